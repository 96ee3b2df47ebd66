import CachePolicy
import HTTPModel

/// Bytes of a cached resource in memory, with its header fields.
package struct StoredBytes: Sendable {
    package let bytes: [UInt8]
    package let fields: HeaderFields
    /// Where it came from, after redirects.
    package let finalURL: String
    package let generation: GenerationID
}

extension CacheStore {
    /// Reads a small resource, or a range of one, and verifies the chunks that were not verified before. Blocks, like
    /// other commands.
    /// - Parameters:
    ///   - range: nil for all of it.
    ///   - limit: in bytes.
    /// - Returns: nil if the range is not completely cached, does not exist, or exceeds the limit.
    package func bytes(of key: CacheKey, _ range: Range<Int64>? = nil, limit: Int) throws(StoreError) -> StoredBytes? {
        guard let hold = try FileHold.of(key, verifying: range, in: self) else { return nil }
        let range = range ?? 0..<hold.length
        guard range.lowerBound >= 0, range.upperBound <= hold.length,
            range.upperBound -| range.lowerBound <= Int64(limit), hold.gaps(in: range).isEmpty
        else { return nil }
        return try hold.bytes(range)
    }

    /// The generation of a resource that is completely cached; nil if none is. Blocks, like other commands.
    package func completeGeneration(of key: CacheKey) throws(StoreError) -> GenerationID? {
        guard let generation = try loader.load(key), generation.isComplete else { return nil }
        return generation.id
    }
}

extension FileHold {
    /// Reads the beginning of a generation, which a reader has passed and so verified. Blocks.
    /// - Returns: nil if not all of it is there any more.
    package static func bytes(first count: Int, of generation: Generation) throws(StoreError) -> [UInt8]? {
        // Nothing of it is evicted meanwhile.
        hold(generation, true)
        defer { hold(generation, false) }
        let (losses, range) = (generation.withChunks(\.losses), 0..<Int64(count)) // no trap: what was read
        guard generation.gap(in: range) == nil else { return nil }
        let bytes = try generation.file.bytes(range)
        return bytes.count == count && generation.withChunks(\.losses) == losses ? bytes : nil
    }
}

extension GenerationBytes {
    /// - Parameter range: must fit into memory.
    /// - Returns: fewer at the end of the file.
    fileprivate func bytes(_ range: Range<Int64>) throws(StoreError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: range.count)
        let read = bytes.withUnsafeMutableBytes { buffer in
            Result { () throws(StoreError) in try self.read(into: buffer, at: range.lowerBound) }
        }
        bytes.removeLast(bytes.count - (try read.get())) // no trap: it reads no more than there is room for
        return bytes
    }
}

extension FileHold {
    /// - Parameter range: must be present and fit into memory.
    fileprivate func bytes(_ range: Range<Int64>) throws(StoreError) -> StoredBytes? {
        let bytes = try generation.file.bytes(range)
        guard bytes.count == range.count, !isLost else { return nil }
        let head = generation.head
        return StoredBytes(
            bytes: bytes, fields: head.fields, finalURL: head.finalURL, generation: generation.id)
    }
}
