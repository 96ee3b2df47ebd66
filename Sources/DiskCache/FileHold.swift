import CachePolicy

extension FileHold {
    /// The result of holding a complete file.
    package enum Holding: Sendable {
        case complete(FileHold)
        /// The missing ranges, in order.
        case incomplete(missing: [ByteSpan])
    }

    /// Holds the file of a resource for this process alone: the index may know less of it.
    /// - Parameters:
    ///   - range: the range to verify; nil for all.
    ///   - isWanted: asked for each extent; false ends the verification, with an error.
    /// - Returns: nil if nothing of it is cached.
    static func of(
        _ key: CacheKey, verifying range: Range<Int64>? = nil, in store: CacheStore, isWanted: () -> Bool = { true }
    ) throws(StoreError) -> FileHold? {
        guard let generation = try store.loader.load(key), let length = generation.length else { return nil }
        let path = GenerationFiles.relativePath(of: generation.id)
        return try FileHold(generation, length: length, path: path, verifying: range) { ordinal throws(StoreError) in
            // Nobody waits for it any more.
            guard !store.core.isEnding, isWanted() else { throw .closing }
            store.verifier.verify(generation, extent: ordinal)
        }
    }
}

/// Keeps a file in place for somebody who was told its name: as long as this lives, it keeps that name, and none of it
/// is evicted.
///
/// All chunks that it calls present are verified, in the extents that it was taken for. If one of them later turns out
/// to be damaged, the hold is *lost*.
package final class FileHold: Sendable {
    /// The path below the cache directory.
    package let path: String
    package let length: Int64
    /// The content codings in which its origin sent it, in the order in which they were applied.
    package let codings: [String]
    let generation: Generation
    /// `ChunkTable.losses` at the time when all present chunks had been verified.
    private let losses: Int

    /// - Parameters:
    ///   - range: verify only the extents that it touches; nil for all.
    ///   - verify: compares the checksums of an extent's unverified chunks and drops those that differ. May end the
    ///     verification, which takes long, with an error.
    init(
        _ generation: Generation, length: Int64, path: String, verifying range: Range<Int64>? = nil,
        verify: (_ ordinal: Int) throws(StoreError) -> Void
    ) throws(StoreError) {
        self.generation = generation
        (self.length, self.path) = (length, path)
        codings = ContentEncoding.codings(generation.head.fields)
        Self.hold(generation, true)
        do throws(StoreError) { losses = try Self.verify(generation, range, length: length, verify) } catch {
            // There will be no `deinit`.
            Self.hold(generation, false)
            throw error
        }
    }

    deinit { Self.hold(generation, false) }

    static func hold(_ generation: Generation, _ isHeld: Bool) {
        generation.state.withLock { state in
            state.usage.users += isHeld ? 1 : -1
            state.usage.holds += isHeld ? 1 : -1
        }
    }

    /// - Returns: `losses` at the time when no unverified chunk was left.
    private static func verify(
        _ generation: Generation, _ range: Range<Int64>?, length: Int64,
        _ verify: (_ ordinal: Int) throws(StoreError) -> Void
    ) throws(StoreError) -> Int {
        let wanted = range.map { extents(touching: $0, length: length, generation.geometry) }
        while true {
            let (unverified, losses) = generation.withChunks { ($0.unverifiedExtents, $0.losses) }
            let ordinals = unverified.filter { wanted?.contains($0) ?? true }
            guard !ordinals.isEmpty else { return losses }
            for ordinal in ordinals { try verify(ordinal) }
        }
    }

    private static func extents(touching range: Range<Int64>, length: Int64, _ geometry: ChunkGeometry) -> Range<Int> {
        let part = range.clamped(to: 0..<max(0, length)) // no trap: not below 0
        guard !part.isEmpty else { return 0..<0 }
        // no trap: it is not empty, and lies in a file
        return geometry.extent(at: part.lowerBound)..<geometry.extent(at: part.upperBound - 1) + 1
    }

    /// The absent ranges, in order, by whole chunks.
    package func gaps(in range: Range<Int64>) -> [Range<Int64>] {
        var (gaps, rest): ([Range<Int64>], Range<Int64>) = ([], range)
        while !rest.isEmpty, let gap = generation.gap(in: rest)?.clamped(to: rest), !gap.isEmpty {
            gaps.append(gap)
            rest = gap.upperBound..<range.upperBound
        }
        return gaps
    }

    /// Whether present bytes may be wrong: another version has replaced them, or chunks could not be saved or read, or
    /// were damaged. Ask after `gaps`: bytes outside the gaps were sound until then.
    package var isLost: Bool {
        generation.state.withLock { $0.isRetired || $0.chunks.losses != losses }
    }
}
