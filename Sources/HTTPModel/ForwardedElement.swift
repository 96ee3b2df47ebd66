/// An element of `Forwarded` (RFC 7239 §4): what one proxy states about the request that it received.
package struct ForwardedElement: Sendable, Equatable {
    /// `for`: the sender of the request, an address with or without a port, `unknown`, or an invented name.
    package var client: String?
    /// `proto`
    package var scheme: String?
    /// `host`
    package var host: String?

    package init() {}

    /// Parses a whole field, its lines joined by commas. The last element is that of the last proxy.
    /// - Returns: nil if any part is malformed: what stands before an open quote could swallow what a proxy appended.
    package static func parse(_ field: String) -> [ForwardedElement]? {
        var scanner = FieldScanner(field)
        var elements: [ForwardedElement] = []
        while true {
            guard let element = take(from: &scanner) else { return nil }
            // RFC 9110 §5.6.1: empty elements of a list do not count.
            if let element { elements.append(element) }
            if scanner.isAtEnd { return elements }
            guard scanner.take(ASCII.comma) else { return nil }
        }
    }

    /// - Returns: nil if it is malformed, and a nil inside if it is empty.
    private static func take(from scanner: inout FieldScanner) -> ForwardedElement?? {
        var element = ForwardedElement()
        var names: Set<String> = []
        while true {
            scanner.skipOptionalSpace()
            let name = ASCII.lowercased(Substring(scanner.take(while: ASCII.isToken)))
            if !name.isEmpty {
                // Each parameter occurs at most once in an element (§4).
                guard names.insert(name).inserted, let value = takeValue(from: &scanner) else { return nil }
                element.set(name, value)
            }
            scanner.skipOptionalSpace()
            guard scanner.take(UInt8(ascii: ";")) else { return .some(names.isEmpty ? nil : element) }
        }
    }

    private static func takeValue(from scanner: inout FieldScanner) -> String? {
        guard scanner.take(UInt8(ascii: "=")) else { return nil }
        if let text = scanner.takeQuotedString() { return text }
        // Colons and brackets belong into quotes, but proxies write addresses without them.
        let text = scanner.take { ASCII.isToken($0) || $0 == ASCII.colon || $0 == 0x5B || $0 == 0x5D }
        return text.isEmpty ? nil : String(Substring(text))
    }

    private mutating func set(_ name: String, _ value: String) {
        switch name {
        case "for": client = value
        case "proto": scheme = value
        case "host": host = value
        default: break
        }
    }
}
