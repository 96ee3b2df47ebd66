/// Offsets, lengths and counts of bytes as messages state them (RFC 9110 §8.6, §14.1.1, §14.4).
///
/// Grammar sets no limit to them; arithmetic does. So they are bounded where they are read, far below `Int64.max`:
/// whoever adds some of them, or rounds one up to a chunk, need not think of overflow.
package enum ByteNumber {
    /// 1 EiB, far beyond any file there is. Seven of these can be added, and any number of eighteen digits is below it.
    package static let greatest: Int64 = 1 << 60

    /// `1*DIGIT` up to `greatest`; nil for anything else: no such body can be handled.
    package static func parse(_ digits: some Collection<UInt8>) -> Int64? { ASCII.decimal(digits, upTo: greatest) }

    /// A number that may be too great without being wrong: held at `greatest`.
    static func bounded(_ value: Int64) -> Int64 { min(value, greatest) }
}
