import CachePolicy

/// The extents of a generation of which something is known, by their ordinals. Its memory follows what has come,
/// however long the resource is said to be and however far out its bytes begin.
struct ExtentTable: Sendable {
    /// Ascending.
    private(set) var ordinals: [Int] = []
    /// In the order of `ordinals`.
    private var extents: [Extent] = []

    private static let blank = Extent()

    var values: [Extent] { extents }

    /// In order.
    var entries: Zip2Sequence<[Int], [Extent]> { zip(ordinals, extents) }

    /// A blank one where nothing is known. One that is blank again after a change is forgotten.
    subscript(ordinal: Int) -> Extent {
        _read {
            let place = place(of: ordinal)
            if place < ordinals.count, ordinals[place] == ordinal { yield extents[place] } else { yield Self.blank }
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

    /// Of the first extent that is not before this one.
    private func place(of ordinal: Int) -> Int {
        // Of a file that is there from its start on each has its own place; and most come at the end.
        if ordinal < ordinals.count, ordinals[ordinal] == ordinal { return ordinal }
        guard let last = ordinals.last, ordinal <= last else { return ordinals.count }
        var (low, high) = (0, ordinals.count - 1)
        while low < high {
            let middle = (low + high) / 2
            if ordinals[middle] < ordinal { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// The first chunk from `chunk` on that is present; `limit` where there is none before it.
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

    /// The first chunk from `chunk` on that is absent; `limit` where there is none before it.
    func nextAbsent(from chunk: Int, limit: Int) -> Int {
        let size = ChunkGeometry.chunksPerExtent
        var chunk = chunk
        for place in place(of: chunk / size)..<ordinals.count where chunk < limit {
            // One that is left out is absent as a whole.
            guard ordinals[place] == chunk / size else { break }
            let bit = chunk % size, run = extents[place].present.runOfPresent(from: bit)
            chunk += run
            if run < size - bit { break }
        }
        return min(chunk, limit)
    }
}
