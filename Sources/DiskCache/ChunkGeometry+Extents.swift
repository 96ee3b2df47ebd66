import CachePolicy
import HTTPModel

/// Maps chunks of an extent to bytes of the resource and blocks on the disk.
extension ChunkGeometry {
    /// In bytes. Longer bodies are neither stored nor passed through memory.
    package static let longestBody: Int64 = 1 << 40

    /// The bytes of an extent.
    func extentBytes(_ ordinal: Int, length: Int64) -> Range<Int64> {
        bytes(of: 0..<Self.chunksPerExtent, inExtent: ordinal, length: length)
    }

    /// The bytes of a run of an extent's chunks.
    func bytes(of run: Range<Int>, inExtent ordinal: Int, length: Int64?) -> Range<Int64> {
        let first = ordinal * Self.chunksPerExtent
        return bytes(ofChunks: first + run.lowerBound..<first + run.upperBound, length: length)
    }

    /// The bytes of a run of the resource's chunks.
    func bytes(ofChunks run: Range<Int>, length: Int64?) -> Range<Int64> {
        // no trap: starts grow with the ordinal, and a length is never negative
        (chunkStart(run.lowerBound)..<chunkStart(run.upperBound)).clamped(to: 0..<max(0, length ?? .max))
    }

    /// An extent's chunks that belong to a run of the resource's chunks.
    func part(of chunks: Range<Int>, inExtent ordinal: Int) -> Presence {
        let first = ordinal * Self.chunksPerExtent
        let part = chunks.clamped(to: first..<first + Self.chunksPerExtent)
        return part.isEmpty ? Presence() : Presence(part.lowerBound - first..<part.upperBound - first)
    }

    /// An extent's chunks that exist in a resource of this length.
    func existing(_ chunks: Presence, inExtent ordinal: Int, length: Int64) -> Presence {
        chunks.intersection(Presence(0..<chunkCount(inExtent: ordinal, length: length)))
    }

    /// The number of bytes in an extent's chunks.
    func bodyBytes(of chunks: Presence, inExtent ordinal: Int, length: Int64?) -> Int64 {
        chunks.runs.reduce(0) { sum, run in
            let bytes = bytes(of: run, inExtent: ordinal, length: length)
            return sum +| bytes.upperBound -| bytes.lowerBound
        }
    }

    /// The disk usage of an extent's chunks.
    func blockBytes(of chunks: Presence, inExtent ordinal: Int, length: Int64?) -> Int64 {
        chunks.runs.reduce(0) { sum, run in
            run.reduce(sum) { $0 +| blockBytes(ofChunk: ordinal * Self.chunksPerExtent + $1, length: length) }
        }
    }

    func blockBytes(ofChunk chunk: Int, length: Int64?) -> Int64 {
        let bytes = chunkBytes(chunk, length: length)
        return CapacityLedger.rounded(bytes.upperBound -| bytes.lowerBound)
    }

    /// The byte ranges of extents' chunks, in order; adjacent ranges are merged.
    func ranges(of extents: some Sequence<(ordinal: Int, chunks: Presence)>, length: Int64?) -> [Range<Int64>] {
        var ranges: [Range<Int64>] = []
        for (ordinal, chunks) in extents {
            for run in chunks.runs {
                let range = bytes(of: run, inExtent: ordinal, length: length)
                if let last = ranges.last, last.upperBound == range.lowerBound {
                    // no trap: it begins where the last one ends
                    ranges[ranges.count - 1] = last.lowerBound..<range.upperBound
                } else {
                    ranges.append(range)
                }
            }
        }
        return ranges
    }
}
