/// Names and values as the index has them.
extension IndexStatement {
    /// Encodes pairs as JSON (RFC 8259) in UTF-8: an array of arrays of two. Written by hand because it runs for each
    /// small file.
    static func pairs(_ pairs: some Sequence<(String, String?)>) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity(512)
        text.append(UInt8(ascii: "["))
        for (name, value) in pairs {
            if text.count > 1 { text.append(UInt8(ascii: ",")) }
            text.append(UInt8(ascii: "["))
            append(name, to: &text)
            text.append(UInt8(ascii: ","))
            if let value { append(value, to: &text) } else { text += "null".utf8 }
            text.append(UInt8(ascii: "]"))
        }
        text.append(UInt8(ascii: "]"))
        return text
    }

    /// Decodes what `pairs` encodes; nil for other JSON, and for control characters.
    static func plainPairs(_ text: String) -> [(String, String?)]? {
        var (text, pairs) = (text, [(String, String?)]())
        return text.withUTF8 { bytes in
            var rest = bytes[...]
            guard rest.take("[") else { return nil }
            while !rest.take("]") {
                guard pairs.isEmpty || rest.take(","), rest.take("["), let name = rest.takeString(), rest.take(",")
                else { return nil }
                let value = rest.takeString()
                guard value != nil || rest.take("null"), rest.take("]") else { return nil }
                pairs.append((name, value))
            }
            return rest.isEmpty ? pairs : nil
        }
    }

    private static func append(_ string: String, to text: inout [UInt8]) {
        text.append(UInt8(ascii: "\""))
        var string = string
        string.withUTF8 { bytes in
            guard bytes.contains(where: isEscaped) else { return text.append(contentsOf: bytes) }
            for byte in bytes { append(byte, to: &text) }
        }
        text.append(UInt8(ascii: "\""))
    }

    fileprivate static func isEscaped(_ byte: UInt8) -> Bool {
        byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\")
    }

    private static func append(_ byte: UInt8, to text: inout [UInt8]) {
        guard isEscaped(byte) else { return text.append(byte) }
        text.append(UInt8(ascii: "\\"))
        guard byte < 0x20 else { return text.append(byte) }
        let digits = String(byte, radix: 16)
        text += ("u" + String(repeating: "0", count: 4 - digits.count) + digits).utf8
    }
}

private extension Slice<UnsafeBufferPointer<UInt8>> {
    /// - Returns: whether it begins with a text, which is taken off.
    mutating func take(_ text: StaticString) -> Bool {
        let isThere = starts(with: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
        if isThere { self = dropFirst(text.utf8CodeUnitCount) }
        return isThere
    }

    /// Takes off a JSON string; nil if it has other escapes than those of quotes and backslashes.
    mutating func takeString() -> String? {
        guard take("\"") else { return nil }
        var text = String(decoding: takePlain(), as: UTF8.self)
        while !take("\"") {
            guard take("\\"), let byte = popFirst(), byte >= 0x20, IndexStatement.isEscaped(byte) else { return nil }
            text.unicodeScalars.append(Unicode.Scalar(byte))
            text += String(decoding: takePlain(), as: UTF8.self)
        }
        return text
    }

    /// Takes off what needs no escapes.
    private mutating func takePlain() -> UnsafeBufferPointer<UInt8> {
        let rest = UnsafeBufferPointer(rebasing: self)
        var count = 0
        while count < rest.count, !IndexStatement.isEscaped(rest[count]) { count += 1 }
        self = dropFirst(count)
        return UnsafeBufferPointer(rebasing: rest[..<count])
    }
}
