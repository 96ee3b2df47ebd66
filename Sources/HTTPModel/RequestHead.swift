import Glibc

package enum RequestMethod: Sendable, Equatable {
    case get, head, options
    case other(String)

    /// The method as written on the wire.
    package var name: String {
        switch self {
        case .get: "GET"
        case .head: "HEAD"
        case .options: "OPTIONS"
        case .other(let name): name
        }
    }
}

extension String {
    /// The value of a field. Bytes that are not UTF-8 are opaque (RFC 9110 §5.5): each becomes a character, so that
    /// different values stay different.
    package init(fieldValue bytes: UnsafeBufferPointer<UInt8>) {
        self = String(utf8: bytes) ?? String(String.UnicodeScalarView(bytes.map(Unicode.Scalar.init)))
    }

    /// Nil if the bytes are not UTF-8. `init(validating:as:)` looks up its generic types at each call.
    package init?(utf8 bytes: UnsafeBufferPointer<UInt8>) {
        self = String(decoding: bytes, as: UTF8.self)
        // What is not UTF-8 has become U+FFFD, which begins with this byte.
        let mayDiffer = withUTF8 { text in text.baseAddress.map { memchr($0, 0xEF, text.count) != nil } ?? false }
        guard !mayDiffer || utf8.elementsEqual(bytes) else { return nil }
    }
}

package enum HTTPVersion: Sendable {
    case http10, http11
}

/// A request line and its fields.
///
/// Strings of fields are created on demand, since most fields of a player's request are never read.
package final class RequestHead: Sendable {
    /// A half-open range of bytes in a `Rest`: a name or a value.
    struct ByteSpan: Sendable {
        let lower: UInt32
        let upper: UInt32

        init(_ range: Range<Int>) {
            lower = UInt32(range.lowerBound) // no trap: offsets in a head, which RequestLimits bounds
            upper = UInt32(range.upperBound) // no trap: as above
        }

        var range: Range<Int> { Int(lower)..<Int(upper) }
    }

    struct FieldSpan: Sendable {
        let name: ByteSpan
        let value: ByteSpan
    }

    /// All of a head after its target: one copy of the bytes as received, and the place of each field in them. A
    /// client's requests often have the same, byte for byte but for the value of `Range`: they share it.
    package final class Rest: Sendable {
        package let bytes: [UInt8]
        let version: HTTPVersion
        let framing: MessageFraming
        let fieldSpans: [FieldSpan]
        /// A bit for each name of a field, by `bit(of:)`: most names that are looked up are absent.
        let names: UInt64
        /// The bits that several fields have: the names of all others stand in one line.
        let repeatedNames: UInt64
        /// The value of `Range`, if one line has it: that of a head which shares this may differ.
        let range: ByteSpan?
        /// Whether there are preconditions (RFC 9110 §13.1) but `If-Range`, and whether there is that: most have none.
        package let isConditional, hasIfRange: Bool
        /// Whether there is `Connection`.
        let hasConnection: Bool

        init(_ bytes: [UInt8], _ version: HTTPVersion, _ framing: MessageFraming, _ fields: [FieldSpan]) {
            (self.bytes, self.version, self.framing, fieldSpans) = (bytes, version, framing, fields)
            var known: UInt64 = 0, repeated: UInt64 = 0
            bytes.withUnsafeBufferPointer { bytes in
                for field in fields {
                    let bit = RequestHead.bit(of: UnsafeBufferPointer(rebasing: bytes[field.name.range]))
                    repeated |= known & bit
                    known |= bit
                }
            }
            (names, repeatedNames) = (known, repeated)
            let first = { (name: StaticString) in
                known & RequestHead.bit(of: name) == 0 ? nil : fields.first { RequestHead.has($0, name, in: bytes) }
            }
            range = repeated & RequestHead.bit(of: "range") == 0 ? first("range")?.value : nil
            isConditional =
                first("if-match") != nil || first("if-none-match") != nil || first("if-modified-since") != nil
                || first("if-unmodified-since") != nil
            hasIfRange = first("if-range") != nil
            hasConnection = first("connection") != nil
        }
    }

    package let method: RequestMethod
    /// The request target as sent, in ASCII: other bytes, which are invalid in a URL but are sent by players, are
    /// percent-encoded.
    package let target: String
    /// The framing of the body after the head.
    package let body: BodyFraming
    package let rest: Rest
    /// The value of `Range`, where it is another than in `rest`.
    private let otherRange: String?

    init(_ method: RequestMethod, _ target: String, _ rest: Rest, otherRange: String?) throws(RequestFault) {
        body = try rest.framing.check(method, rest.version)
        (self.method, self.target, self.rest, self.otherRange) = (method, target, rest, otherRange)
    }

    package var version: HTTPVersion { rest.version }

    /// Whether the client waits for `100 Continue` before it sends the body (RFC 9110 §10.1.1): not in HTTP/1.0, and
    /// not without a body.
    package var expectsContinue: Bool { rest.framing.expectsContinue && version == .http11 && body != .empty }

    /// One of 64 bits, by the length and the first letter of a name.
    private static func bit(of name: UnsafeBufferPointer<UInt8>) -> UInt64 {
        1 << UInt64((name.count &* 5 &+ Int(name[0] & 0x1F)) & 63) // no trap: a name has a letter
    }

    private static func bit(of name: StaticString) -> UInt64 { name.withUTF8Buffer { bit(of: $0) } }

    /// The first value of the field, without the white space around it; nil, without an allocation, if absent.
    package func value(of name: StaticString) -> String? {
        first(name).map { value(of: $0) }
    }

    private func first(_ name: StaticString) -> FieldSpan? {
        guard rest.names & Self.bit(of: name) != 0 else { return nil }
        return rest.fieldSpans.first { isNamed($0, name) }
    }

    /// All values of the field, joined by ", " (RFC 9110 §5.3); nil, without an allocation, if absent.
    package func combined(_ name: StaticString) -> String? {
        guard var list = value(of: name) else { return nil }
        guard rest.repeatedNames & Self.bit(of: name) != 0 else { return list }
        for field in rest.fieldSpans.drop(while: { !isNamed($0, name) }).dropFirst() where isNamed(field, name) {
            list += ", " + value(of: field)
        }
        return list
    }

    /// All field lines, in their order.
    package var fields: HeaderFields {
        HeaderFields(rest.fieldSpans.map { .init(name: text($0.name), value: value(of: $0)) })
    }

    /// Whether the connection may be reused for another request (RFC 9112 §9.3).
    package var keepsAlive: Bool {
        if hasConnectionOption("close") { return false }
        switch version {
        case .http11: return true
        // RFC 9112 §9.3: a proxy must not keep a connection with an HTTP/1.0 client; this server is a proxy only
        // for the absolute form.
        case .http10: return isOriginForm && hasConnectionOption("keep-alive")
        }
    }

    /// RFC 9112 §3.2.1
    private var isOriginForm: Bool { target.utf8.first == UInt8(ascii: "/") }

    private func hasConnectionOption(_ option: StaticString) -> Bool {
        rest.hasConnection
            && rest.fieldSpans.contains { field in
                isNamed(field, "connection")
                    && rest.bytes[field.value.range].split(separator: ASCII.comma).contains {
                        matches(ASCII.trimmed($0), option)
                    }
            }
    }

    private func isNamed(_ field: FieldSpan, _ name: StaticString) -> Bool { Self.has(field, name, in: rest.bytes) }

    private static func has(_ field: FieldSpan, _ name: StaticString, in bytes: [UInt8]) -> Bool {
        let count = name.utf8CodeUnitCount
        guard Int(field.name.upper - field.name.lower) == count else { return false } // no trap: bounds of a range
        return bytes.withUnsafeBufferPointer { bytes in
            let sent = bytes.baseAddress! + Int(field.name.lower), requested = name.utf8Start
            // The names looked up consist of letters and hyphens, in which this bit is only the case.
            for place in 0..<count where sent[place] | 0x20 != requested[place] | 0x20 { return false }
            return true
        }
    }

    private func matches(_ bytes: ArraySlice<UInt8>, _ name: StaticString) -> Bool {
        name.withUTF8Buffer { ASCII.equalIgnoringCase(bytes, $0) }
    }

    private func value(of field: FieldSpan) -> String {
        if let otherRange, field.value.lower == rest.range?.lower { return otherRange }
        return text(field.value)
    }

    private func text(_ span: ByteSpan) -> String {
        rest.bytes[span.range].withUnsafeBufferPointer { String(fieldValue: $0) }
    }
}
