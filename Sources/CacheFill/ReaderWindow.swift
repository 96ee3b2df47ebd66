import CachePolicy
import DiskCache

/// What a reader has of the extent that it leases.
struct ReaderWindow {
    /// Up to here, the bytes of the extent are known to be readable.
    var readable: Int64
    /// Up to here, the bytes were read from the disk for this reader.
    var warmed: Int64 = 0
    /// Its offset as the followed fetch knows it; nil if that was not reported.
    var reported: Int64?
    /// The range that was returned last, and whether its bytes had just been fetched.
    var last: (range: Range<Int64>, isFresh: Bool) = (0..<0, false)
    /// The mapping that the last returned bytes point into.
    var mapping: MappedBytes?
    /// The buffer with the first piece, if that was copied rather than mapped.
    var piece: UnsafeMutableRawBufferPointer?

    /// What is to be read again from an offset on.
    mutating func rewind(to offset: Int64) { (readable, mapping) = (offset, nil) }
}
