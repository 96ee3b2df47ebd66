import CachePolicy

/// The known extents of a generation, by ordinal. Its memory grows with what has been stored, whatever the resource's
/// length and wherever its first bytes are.
struct ExtentTable: Sendable {
    /// Ascending.
    private(set) var ordinals: [Int] = []
    /// In the order of `ordinals`.
    private var extents: [Extent] = []

    var values: [Extent] { extents }

    /// In order.
    var entries: Zip2Sequence<[Int], [Extent]> { zip(ordinals, extents) }

    /// A blank extent if none is known. An extent that is blank after a change is removed.
    subscript(ordinal: Int) -> Extent {
        // Not `_read`, which takes its frame from the heap each time.
        @inline(__always) get {
            let place = place(of: ordinal)
            return place < ordinals.count && ordinals[place] == ordinal ? extents[place] : Extent()
        }
        _modify {
            let place = place(of: ordinal)
            if place == ordinals.count || ordinals[place] != ordinal {
                ordinals.insert(ordinal, at: place)
                extents.insert(Extent(), at: place)
            }
            defer {
                if extents[place].isBlank {
                    ordinals.remove(at: place)
                    extents.remove(at: place)
                }
            }
            yield &extents[place]
        }
    }

    /// The index of the first known extent with this ordinal or a greater one.
    private func place(of ordinal: Int) -> Int {
        // In a file that is filled from its start, each extent's index is its ordinal; and most are added at the end.
        if ordinal < ordinals.count, ordinals[ordinal] == ordinal { return ordinal }
        guard let last = ordinals.last, ordinal <= last else { return ordinals.count }
        var (low, high) = (0, ordinals.count - 1)
        while low < high {
            let middle = (low + high) / 2
            if ordinals[middle] < ordinal { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// The first present chunk at or after `chunk`; `limit` if there is none before it.
    func nextPresent(from chunk: Int, limit: Int) -> Int {
        let size = ChunkGeometry.chunksPerExtent
        for place in place(of: chunk / size)..<ordinals.count {
            let start = ordinals[place] * size
            guard start < limit else { break }
            let bit = max(0, chunk - start), run = extents[place].present.runOfAbsent(from: bit)
            if run < size - bit { return min(start + bit + run, limit) }
        }
        return limit
    }

    /// The first absent chunk at or after `chunk`; `limit` if there is none before it.
    func nextAbsent(from chunk: Int, limit: Int) -> Int {
        let size = ChunkGeometry.chunksPerExtent
        var chunk = chunk
        for place in place(of: chunk / size)..<ordinals.count where chunk < limit {
            // All chunks of a missing extent are absent.
            guard ordinals[place] == chunk / size else { break }
            let bit = chunk % size, run = extents[place].present.runOfPresent(from: bit)
            chunk += run
            if run < size - bit { break }
        }
        return min(chunk, limit)
    }
}
