import HTTPModel

/// The header of a response, except for the fields that the connection adds (`Date`, `Connection`, framing).
package struct Response {
    package var status: Int
    /// Field lines as they are sent, each ended by CRLF.
    package private(set) var fieldBytes: [UInt8] = []
    /// The body's length in bytes if it is known; for HEAD, the length that GET would have.
    package var length: Int64?
    /// Whether the fields include `Date`: a stored response keeps its own (RFC 9110 §6.6.1).
    package var hasDate = false
    /// Whether the connection ends with this response.
    package var closes = false
    /// Whether the body has no end: a server that is shutting down does not wait for it.
    package var isEndless = false

    /// Whether a tunnel follows (RFC 9110 §9.3.6) instead of content.
    var opensTunnel = false

    package init(_ status: Int, length: Int64?) {
        self.status = status
        self.length = length
        fieldBytes.reserveCapacity(512)
    }

    /// Appends a field line. Neither part may contain a line break; callers pass values that a parser has already
    /// checked.
    package mutating func field(_ name: StaticString, _ value: String) {
        fieldBytes.append(contentsOf: UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
        fieldBytes.append(contentsOf: Self.separator)
        fieldBytes.append(contentsOf: value.utf8)
        fieldBytes.append(contentsOf: Self.lineEnd)
    }

    package mutating func field(_ name: String, _ value: String) {
        fieldBytes.append(contentsOf: name.utf8)
        fieldBytes.append(contentsOf: Self.separator)
        fieldBytes.append(contentsOf: value.utf8)
        fieldBytes.append(contentsOf: Self.lineEnd)
    }

    package mutating func field(_ name: StaticString, _ number: Int64) {
        fieldBytes.append(contentsOf: UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
        fieldBytes.append(contentsOf: Self.separator)
        fieldBytes.append(decimal: number)
        fieldBytes.append(contentsOf: Self.lineEnd)
    }

    package mutating func cacheStatus(_ status: CacheStatus) {
        fieldBytes.append(contentsOf: Self.cacheStatus)
        status.write(to: &fieldBytes)
        fieldBytes.append(contentsOf: Self.lineEnd)
    }

    /// `Content-Range` of a part (RFC 9110 §14.4).
    package mutating func contentRange(_ range: Range<Int64>, total: Int64?) {
        fieldBytes.append(contentsOf: Self.contentRange)
        fieldBytes.append(decimal: range.lowerBound)
        fieldBytes.append(UInt8(ascii: "-"))
        fieldBytes.append(decimal: range.upperBound - 1) // no trap: it is not empty
        fieldBytes.append(UInt8(ascii: "/"))
        if let total { fieldBytes.append(decimal: total) } else { fieldBytes.append(UInt8(ascii: "*")) }
        fieldBytes.append(contentsOf: Self.lineEnd)
    }

    /// Appends field lines that were rendered before.
    package mutating func fields(rendered bytes: [UInt8]) {
        fieldBytes.append(contentsOf: bytes)
    }

    /// The last value of that name, as it is sent: this proxy's own comes after those that are passed on.
    func lastValue(of name: String) -> String? {
        for line in fieldBytes.split(separator: ASCII.lineFeed).reversed() {
            let named = line.prefix { $0 != ASCII.colon }
            guard ASCII.equalIgnoringCase(named, name.utf8) else { continue }
            return String(
                decoding: ASCII.trimmed(line[named.endIndex...].dropFirst().filter { $0 != ASCII.carriageReturn }),
                as: UTF8.self)
        }
        return nil
    }

    /// Removes all lines of that name.
    package mutating func remove(_ name: String) {
        let lines = fieldBytes.split(separator: ASCII.lineFeed).filter { line in
            !ASCII.equalIgnoringCase(line.prefix { $0 != ASCII.colon }, name.utf8)
        }
        fieldBytes = lines.flatMap { $0 + [ASCII.lineFeed] }
    }

    private static let separator: [UInt8] = Array(": ".utf8)
    private static let lineEnd: [UInt8] = Array("\r\n".utf8)
    private static let cacheStatus: [UInt8] = Array("Cache-Status: ".utf8)
    private static let contentRange: [UInt8] = Array("Content-Range: bytes ".utf8)
}
