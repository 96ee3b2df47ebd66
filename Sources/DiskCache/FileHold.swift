import CachePolicy

/// What holding a complete file comes to.
package enum Holding: Sendable {
    case complete(FileHold)
    /// What is not cached, in order.
    case incomplete(missing: [ByteSpan])
}

/// A file that is lent to somebody who was told its name. For as long as this lives, nothing of it is evicted, and it
/// keeps its name.
///
/// All that it calls present is verified, in the extents for which it was taken. Where that later turns out not to be
/// what it should, it is *lost*.
package final class FileHold: Sendable {
    /// Where it is, below the cache directory.
    package let path: String
    package let length: Int64
    let generation: Generation
    /// `ChunkTable.losses` when all that was present had been verified.
    private let losses: Int

    /// - Parameters:
    ///   - range: of which the extents are verified; nil for all of it.
    ///   - verify: compares the checksums of an extent's unverified chunks and drops those that differ.
    init(
        _ generation: Generation, length: Int64, path: String, verifying range: Range<Int64>? = nil,
        verify: (_ ordinal: Int) -> Void
    ) {
        self.generation = generation
        (self.length, self.path) = (length, path)
        generation.beginHold()
        losses = generation.verifyAll(range, length: length, verify)
    }

    deinit { generation.endHold() }

    /// What is not there of a range, in order, by whole chunks.
    package func gaps(in range: Range<Int64>) -> [Range<Int64>] { generation.gaps(in: range) }

    /// Whether what was there is worth nothing any more: another version has taken its place, or chunks of it could not
    /// be saved, could not be read or were found damaged. To be asked after `gaps`: what that has left out was sound
    /// until then.
    package var isLost: Bool { generation.isLost(since: losses) }
}

extension Generation {
    /// - Returns: how often something was lost until nothing was left to be verified.
    fileprivate func verifyAll(_ range: Range<Int64>?, length: Int64, _ verify: (_ ordinal: Int) -> Void) -> Int {
        let wanted = range.map { extents(touching: $0, length: length) }
        while true {
            let (unverified, losses) = unverifiedExtents
            let ordinals = unverified.filter { wanted?.contains($0) ?? true }
            guard !ordinals.isEmpty else { return losses }
            for ordinal in ordinals { verify(ordinal) }
        }
    }

    private func extents(touching range: Range<Int64>, length: Int64) -> Range<Int> {
        let part = range.clamped(to: 0..<max(0, length)) // no trap: not below 0
        guard !part.isEmpty else { return 0..<0 }
        // no trap: it is not empty, and lies in a file
        return geometry.extent(at: part.lowerBound)..<geometry.extent(at: part.upperBound - 1) + 1
    }

    /// What is absent of a range, in order, by whole chunks.
    fileprivate func gaps(in range: Range<Int64>) -> [Range<Int64>] {
        var (gaps, rest): ([Range<Int64>], Range<Int64>) = ([], range)
        while !rest.isEmpty, let gap = gap(in: rest)?.clamped(to: rest), !gap.isEmpty {
            gaps.append(gap)
            rest = gap.upperBound..<range.upperBound
        }
        return gaps
    }
}
