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
/// All that it calls present is verified. Where that later turns out not to be what it should, it is *lost*.
package final class FileHold: Sendable {
    /// Where it is, below the cache directory.
    package let path: String
    package let length: Int64
    let generation: Generation
    /// `ChunkTable.losses` when all that was present had been verified.
    private let losses: Int

    /// - Parameter verify: compares the checksums of an extent's unverified chunks and drops those that differ.
    init(_ generation: Generation, length: Int64, path: String, verify: (_ ordinal: Int) -> Void) {
        self.generation = generation
        (self.length, self.path) = (length, path)
        generation.beginHold()
        losses = generation.verifyAll(verify)
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
    fileprivate func verifyAll(_ verify: (_ ordinal: Int) -> Void) -> Int {
        while true {
            let (ordinals, losses) = unverifiedExtents
            guard !ordinals.isEmpty else { return losses }
            for ordinal in ordinals { verify(ordinal) }
        }
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
