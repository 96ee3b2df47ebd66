/// Offsets, lengths and counts of bytes in messages (RFC 9110 §8.6, §14.1.1, §14.4).
///
/// The grammar sets no limit to them, but arithmetic does. So they are bounded when they are parsed, far below
/// `Int64.max`: code that adds a few of them, or rounds one up to a chunk, cannot overflow.
@usableFromInline
package enum ByteNumber {
    /// 1 EiB, far beyond the size of any file. Seven of these can be added, and every number of eighteen digits is
    /// below it.
    @usableFromInline package static let greatest: Int64 = 1 << 60

    /// Parses `1*DIGIT` up to `greatest`; nil for anything else, as no such body can be handled.
    @inlinable package static func parse(_ digits: some Collection<UInt8>) -> Int64? {
        ASCII.decimal(digits, upTo: greatest)
    }

    /// Clamps a number that may be valid beyond the limit to `greatest`.
    static func bounded(_ value: Int64) -> Int64 { min(value, greatest) }
}
