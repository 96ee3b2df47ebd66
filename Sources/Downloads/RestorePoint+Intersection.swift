import DiskCache

extension RestorePoint {
    /// What was cached before either of two downloads of a resource.
    func intersection(_ other: RestorePoint) -> RestorePoint {
        let theirs = Dictionary(other.former.map { ($0.generation, $0) }) { first, _ in first }
        var common = former.compactMap { mine in theirs[mine.generation].map { mine.intersection($0) } }
        // Parts that one of them did not list may have been cached before it too.
        let listed = Set(former.map(\.generation))
        if other.hasMoreParts == true { common += former.filter { theirs[$0.generation] == nil } }
        if hasMoreParts == true { common += other.former.filter { !listed.contains($0.generation) } }
        return RestorePoint(
            key: key, wasPinned: wasPinned && other.wasPinned, former: common,
            hasMoreParts: hasMoreParts == true && other.hasMoreParts == true)
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
        var former = RestorePoint.Former(
            generation: generation, present: common, hits: min(hits, other.hits), isPinned: isPinned && other.isPinned)
        former.key = key ?? other.key
        return former
    }
}
