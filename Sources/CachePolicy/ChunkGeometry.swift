import HTTPModel

/// The one place where offsets become chunks and extents.
///
/// A **chunk** is the unit of presence. An **extent** is 64 consecutive chunks, so that one 64-bit word is its
/// bitmap. Ranges are half-open, offsets and lengths are in bytes, ordinals of chunks and extents count from 0 at
/// the resource's first byte.
///
///     offset  0        chunkSize                          extentSize
///             |  chunk 0  |  chunk 1  |  ...  |  chunk 63  |  chunk 64  |  ...
///             |------------------- extent 0 ---------------|--- extent 1 ---
package struct ChunkGeometry: Sendable, Hashable {
    package static let chunksPerExtent = 64
    package static let allowedChunkSizes: ClosedRange<Int64> = 4096...16_777_216
    /// Chunks of 64 KiB, extents of 4 MiB.
    package static let standard = ChunkGeometry(shift: 16)

    private static let extentShift = 6
    private let shift: Int

    private init(shift: Int) { self.shift = shift }

    /// - Parameter chunkSize: bytes, a power of two from 4 KiB to 16 MiB; nil for anything else.
    package init?(chunkSize: Int64) {
        guard Self.allowedChunkSizes.contains(chunkSize), chunkSize.nonzeroBitCount == 1 else { return nil }
        self.init(shift: chunkSize.trailingZeroBitCount)
    }

    package var chunkSize: Int64 { 1 << Int64(shift) }
    package var extentSize: Int64 { chunkSize << Int64(Self.extentShift) }

    // MARK: - Where an offset lies

    package func chunk(at offset: Int64) -> Int {
        precondition(offset >= 0, "an offset is not negative")
        return Int(offset >> Int64(shift))
    }

    package func extent(at offset: Int64) -> Int { extent(ofChunk: chunk(at: offset)) }

    package func extent(ofChunk chunk: Int) -> Int { chunk >> Self.extentShift }

    /// The chunk's position in its extent's bitmap, 0 to 63.
    package func bit(ofChunk chunk: Int) -> Int { chunk & (Self.chunksPerExtent - 1) }

    // MARK: - Where a chunk or an extent lies

    /// Clamped to `Int64.max` beyond the last offset.
    package func chunkStart(_ chunk: Int) -> Int64 {
        precondition(chunk >= 0, "an ordinal is not negative")
        return chunk <= Int(Int64.max >> Int64(shift)) ? Int64(chunk) << Int64(shift) : .max
    }

    package func extentStart(_ extent: Int) -> Int64 {
        let (chunk, isBeyond) = extent.multipliedReportingOverflow(by: Self.chunksPerExtent)
        return isBeyond ? .max : chunkStart(chunk)
    }

    /// The bytes of a chunk that exist: the last chunk of a resource may be short, a chunk beyond the end is empty.
    package func chunkBytes(_ chunk: Int, length: Int64?) -> Range<Int64> {
        // no trap: starts grow with the ordinal, which is far below Int.max
        (chunkStart(chunk)..<chunkStart(chunk + 1)).clamped(to: bounds(length))
    }

    // MARK: - Ranges

    /// The chunks that hold at least one byte of a range; none for an empty one.
    package func chunks(touching range: Range<Int64>) -> Range<Int> {
        let first = chunk(at: range.lowerBound)
        return range.isEmpty ? first..<first : first..<chunk(at: range.upperBound -| 1) + 1
    }

    /// A range widened to whole chunks, or to the end of the resource if that comes first.
    ///
    ///     chunks  |     |     |     |     |  )length
    ///     range            [=====)
    ///     result        [===========)
    package func roundedOut(_ range: Range<Int64>, length: Int64?) -> Range<Int64> {
        let chunks = chunks(touching: range)
        // no trap: starts grow with the ordinal
        return (chunkStart(chunks.lowerBound)..<chunkStart(chunks.upperBound)).clamped(to: bounds(length))
    }

    private func bounds(_ length: Int64?) -> Range<Int64> { 0..<max(0, length ?? .max) } // no trap: not below 0

    // MARK: - Counts

    package func chunkCount(length: Int64) -> Int { chunks(touching: bounds(length)).count }

    package func extentCount(length: Int64) -> Int {
        (chunkCount(length: length) + Self.chunksPerExtent - 1) >> Self.extentShift
    }

    /// How many chunks of an extent exist, 0 to 64; 64 while the length is unknown.
    package func chunkCount(inExtent extent: Int, length: Int64?) -> Int {
        guard let length else { return Self.chunksPerExtent }
        let before = extent << Self.extentShift
        return min(max(chunkCount(length: length) - before, 0), Self.chunksPerExtent)
    }
}
