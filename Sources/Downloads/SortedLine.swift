import DequeModule

/// Downloads sorted by a number, the smallest first. Fast at both ends.
struct SortedLine {
    private struct Entry: Comparable {
        let key: Double
        let id: Int64

        static func < (a: Entry, b: Entry) -> Bool { (a.key, a.id) < (b.key, b.id) }
    }

    private var entries: Deque<Entry> = []

    var firstKey: Double? { entries.first?.key }
    var ids: some RandomAccessCollection<Int64> { entries.lazy.map(\.id) }

    mutating func insert(_ id: Int64, at key: Double) {
        let entry = Entry(key: key, id: id)
        guard let last = entries.last, entry < last else { return entries.append(entry) }
        entries.insert(entry, at: index(of: entry))
    }

    mutating func remove(_ id: Int64, at key: Double) {
        let entry = Entry(key: key, id: id)
        let index = index(of: entry)
        guard index < entries.count, entries[index] == entry else { return }
        entries.remove(at: index)
    }

    /// The index of the first entry that is not before this one.
    private func index(of entry: Entry) -> Int {
        // Most are removed at the front.
        guard let first = entries.first, first < entry else { return 0 }
        var (low, high) = (0, entries.count)
        while low < high {
            let middle = (low + high) / 2
            if entries[middle] < entry { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
