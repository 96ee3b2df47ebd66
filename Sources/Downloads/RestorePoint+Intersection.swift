extension RestorePoint {
    /// What was there before either of two downloads of a resource.
    func intersection(_ other: RestorePoint) -> RestorePoint {
        let former = former.compactMap { mine in
            other.former.first { $0.generation == mine.generation }.map { mine.intersection($0) }
        }
        return RestorePoint(key: key, wasPinned: wasPinned && other.wasPinned, former: former)
    }
}

extension RestorePoint.Former {
    fileprivate func intersection(_ other: RestorePoint.Former) -> RestorePoint.Former {
        let (a, b) = (present, other.present)
        var common: [Int64] = []
        var (i, j) = (0, 0)
        while i + 1 < a.count, j + 1 < b.count {
            let (start, end) = (max(a[i], b[j]), min(a[i + 1], b[j + 1]))
            if start < end { common += [start, end] }
            if a[i + 1] < b[j + 1] { i += 2 } else { j += 2 }
        }
        return RestorePoint.Former(
            generation: generation, present: common, hits: min(hits, other.hits), isPinned: isPinned && other.isPinned)
    }
}
