import HTTPModel

/// The header of a response, except for the fields that the connection adds (`Date`, `Connection`, framing).
package struct Response {
    package var status: Int
    /// Field lines that were rendered before, which precede the others: shared with whoever has them, not copied.
    private(set) var rendered: [UInt8] = []
    /// Further field lines as they are sent, each ended by CRLF.
    package private(set) var fieldBytes: [UInt8] = []
    /// The body's length in bytes if it is known; for HEAD, the length that GET would have.
    package var length: Int64?
    /// Whether the fields include `Date`: a stored response keeps its own (RFC 9110 §6.6.1).
    package var hasDate = false
    /// Whether the connection ends with this response.
    package var closes = false
    /// Whether the body has no end: a server that is shutting down does not wait for it.
    package var isEndless = false

    /// How this cache handled the request; nil if the fields do not say it, or nobody needs it besides.
    private(set) var cacheStatus: CacheStatus?

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
        fieldBytes.append(upTo: name.utf8CodeUnitCount + value.utf8.count + 4) { line in
            line.append(name)
            line.append(": ")
            line.append(text: value)
            line.append("\r\n")
        }
    }

    package mutating func field(_ name: String, _ value: String) {
        fieldBytes.append(upTo: name.utf8.count + value.utf8.count + 4) { line in
            line.append(text: name)
            line.append(": ")
            line.append(text: value)
            line.append("\r\n")
        }
    }

    package mutating func field(_ name: StaticString, _ number: Int64) {
        fieldBytes.append(upTo: name.utf8CodeUnitCount + 24) { line in
            line.append(name)
            line.append(": ")
            line.append(decimal: number)
            line.append("\r\n")
        }
    }

    package mutating func cacheStatus(_ status: CacheStatus) {
        cacheStatus = status
        fieldBytes.append("Cache-Status: ")
        status.write(to: &fieldBytes)
        fieldBytes.append("\r\n")
    }

    /// Appends field lines at the cost of one.
    /// - Parameter most: the most bytes that are written.
    package mutating func lines(upTo most: Int, _ write: (inout LineWriter) -> Void) {
        fieldBytes.append(upTo: most, write)
    }

    /// `Content-Range` of a part (RFC 9110 §14.4).
    package mutating func contentRange(_ range: Range<Int64>, total: Int64?) {
        fieldBytes.append(upTo: 96) { line in
            line.append("Content-Range: bytes ")
            line.append(decimal: range.lowerBound)
            line.append("-")
            line.append(decimal: range.upperBound - 1) // no trap: it is not empty
            line.append("/")
            if let total { line.append(decimal: total) } else { line.append("*") }
            line.append("\r\n")
        }
    }

    /// Appends field lines that were rendered before.
    package mutating func fields(rendered bytes: [UInt8]) {
        if rendered.isEmpty { rendered = bytes } else { fieldBytes.append(contentsOf: bytes) }
    }
}
