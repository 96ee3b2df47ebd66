import Glibc

/// The characters and decimal numbers of HTTP's grammar (RFC 9110 §5.6).
///
/// Functions on one byte are inlinable, because loops over URLs and fields in other modules call them for each
/// byte; without the attribute of the type, they would not be. Functions on text exist for `String` and `Substring`
/// separately: a generic form, called from another module, would look its types up at run time at each step.
@usableFromInline
package enum ASCII {
    @inlinable package static var tab: UInt8 { 0x09 }
    @inlinable package static var lineFeed: UInt8 { 0x0A }
    @inlinable package static var carriageReturn: UInt8 { 0x0D }
    @inlinable package static var space: UInt8 { 0x20 }
    @inlinable package static var quote: UInt8 { 0x22 }
    @inlinable package static var comma: UInt8 { 0x2C }
    @inlinable package static var colon: UInt8 { 0x3A }
    @inlinable package static var backslash: UInt8 { 0x5C }

    /// `tchar` as two bitmaps, for codes 0 to 63 and 64 to 127 (RFC 9110 §5.6.2).
    @inlinable static var tokenLow: UInt64 { 0x03FF_6CFA_0000_0000 }
    @inlinable static var tokenHigh: UInt64 { 0x57FF_FFFF_C7FF_FFFE }

    @inlinable package static func isToken(_ byte: UInt8) -> Bool {
        guard byte < 128 else { return false }
        return (byte < 64 ? tokenLow : tokenHigh) >> (byte & 63) & 1 == 1
    }

    @inlinable package static func isDigit(_ byte: UInt8) -> Bool { byte &- 0x30 < 10 }

    @inlinable package static func isLetter(_ byte: UInt8) -> Bool { (byte | 0x20) &- 0x61 < 26 }

    /// OWS, the optional white space around values (RFC 9110 §5.6.3).
    @inlinable package static func isOptionalSpace(_ byte: UInt8) -> Bool { byte == space || byte == tab }

    /// White space in XML (XML 1.0 §2.3, production S), and in lines of HLS playlists.
    @inlinable package static func isXMLSpace(_ byte: UInt8) -> Bool {
        isOptionalSpace(byte) || byte == lineFeed || byte == carriageReturn
    }

    /// Characters of a field value: visible characters, spaces, tabs and `obs-text` (RFC 9110 §5.5).
    @inlinable package static func isFieldContent(_ byte: UInt8) -> Bool {
        byte >= space && byte != 0x7F || byte == tab
    }

    @inlinable package static func lowercased(_ byte: UInt8) -> UInt8 { byte &- 0x41 < 26 ? byte | 0x20 : byte }

    /// The value of a hexadecimal digit, 0 to 15.
    @inlinable package static func hexValue(_ byte: UInt8) -> UInt8? {
        if isDigit(byte) { return byte &- 0x30 }
        let letter = byte | 0x20
        return letter &- 0x61 < 6 ? letter &- 0x61 &+ 10 : nil
    }

    /// The upper-case digit for a value of 0 to 15.
    @inlinable package static func hexDigit(_ value: UInt8) -> UInt8 {
        value < 10 ? 0x30 &+ value : 0x41 &+ value &- 10
    }

    /// Compares names of fields, units or directives, ignoring the case of ASCII letters only.
    @inlinable package static func equalIgnoringCase(_ a: some Collection<UInt8>, _ b: some Collection<UInt8>) -> Bool {
        guard a.count == b.count else { return false }
        var others = b.makeIterator()
        for byte in a {
            guard let other = others.next(), lowercased(byte) == lowercased(other) else { return false }
        }
        return true
    }

    package static func equalIgnoringCase(_ a: String, _ b: String) -> Bool {
        let count = a.utf8.count
        guard count == b.utf8.count else { return false }
        let isEqual = a.utf8.withContiguousStorageIfAvailable { a in
            b.utf8.withContiguousStorageIfAvailable { b in
                // Most that are equal are written alike.
                if let a = a.baseAddress, let b = b.baseAddress, memcmp(a, b, count) == 0 { return true }
                return a.indices.allSatisfy { lowercased(a[$0]) == lowercased(b[$0]) }
            }
        }
        return (isEqual ?? nil) ?? equalIgnoringCase(a.utf8, b.utf8)
    }

    package static func equalIgnoringCase(_ a: Substring, _ b: String) -> Bool { equalIgnoringCase(a.utf8, b.utf8) }

    static func allSatisfy(_ text: String, _ condition: (UInt8) -> Bool) -> Bool {
        text.utf8.withContiguousStorageIfAvailable { $0.allSatisfy(condition) } ?? text.utf8.allSatisfy(condition)
    }

    package static func contains(_ text: String, _ byte: UInt8) -> Bool {
        var text = text
        return text.withUTF8 { text in text.baseAddress.map { memchr($0, Int32(byte), text.count) != nil } ?? false }
    }

    /// Whether `part`, which is not empty, is somewhere in `text`, byte by byte.
    package static func contains(_ text: String, _ part: String) -> Bool {
        var (text, part) = (text, part)
        return text.withUTF8 { text in
            part.withUTF8 { part in
                // no trap: it is not empty
                text.indices.dropLast(part.count - 1).contains {
                    text[$0] == part[0] && text[$0...].starts(with: part)
                }
            }
        }
    }

    /// Whether `text` begins with `prefix`, ignoring case.
    package static func begins(_ text: String, with prefix: String) -> Bool {
        text.utf8.count >= prefix.utf8.count
            && equalIgnoringCase(text.utf8.prefix(prefix.utf8.count), prefix.utf8)
    }

    /// A copy of `text` with ASCII letters, and only these, in lower case.
    package static func lowercased(_ text: String) -> String { lowercased(text[...]) }

    package static func lowercased(_ text: Substring) -> String {
        var text = text
        return text.withUTF8 { lowercased(UnsafeRawBufferPointer($0)) }
    }

    package static func lowercased(_ bytes: UnsafeRawBufferPointer) -> String {
        String(unsafeUninitializedCapacity: bytes.count) { lower in
            for place in bytes.indices { lower.initializeElement(at: place, to: lowercased(bytes[place])) }
            return bytes.count
        }
    }

    package static func trimmed(_ text: String) -> Substring { Substring(trimmed(text.utf8)) }

    package static func trimmed(_ text: Substring) -> Substring { Substring(trimmed(text.utf8)) }

    package static func trimmed(_ bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        var (start, end) = (bytes.startIndex, bytes.endIndex)
        while start < end, isOptionalSpace(bytes[start]) { start += 1 }
        while start < end, isOptionalSpace(bytes[end - 1]) { end -= 1 }
        return UnsafeRawBufferPointer(rebasing: bytes[start..<end])
    }

    @inlinable package static func trimmed<Bytes: BidirectionalCollection<UInt8>>(_ bytes: Bytes) -> Bytes.SubSequence
    where Bytes.SubSequence: BidirectionalCollection<UInt8> {
        let tail = bytes.drop(while: isOptionalSpace)
        guard let last = tail.lastIndex(where: { !isOptionalSpace($0) }) else { return tail }
        return tail[...last]
    }

    /// Parses `1*DIGIT`, clamped to `Int64.max`; nil for anything else, including a sign.
    @inlinable package static func saturatingDecimal(_ digits: some Collection<UInt8>) -> Int64? {
        digits.withContiguousStorageIfAvailable(saturating) ?? Array(digits).withUnsafeBufferPointer(saturating)
    }

    @usableFromInline static func saturating(_ digits: UnsafeBufferPointer<UInt8>) -> Int64? {
        guard !digits.isEmpty else { return nil }
        var sum: Int64 = 0
        for digit in digits {
            guard isDigit(digit) else { return nil }
            sum = sum *| 10 +| Int64(digit &- 0x30)
        }
        return sum
    }

    /// Parses `1*DIGIT` if the number fits; nil otherwise. `Int64.max` itself does not fit: no number in HTTP means
    /// it.
    @inlinable package static func decimal(_ digits: some Collection<UInt8>) -> Int64? {
        guard let value = saturatingDecimal(digits), value < .max else { return nil }
        return value
    }
}
