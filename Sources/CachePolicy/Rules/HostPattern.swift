import HTTPModel

/// The hosts that a rule is for: `example.org`, `*.example.org`, `*`, `nas.local:8080`, `[::1]`. Without a port it means all of them.
package struct HostPattern: Sendable, Equatable {
    private let name: Glob
    private let port: Int?

    package init(_ text: String) throws(RuleError) {
        let (name, port) = try Self.split(text)
        guard Self.isName(name) else {
            throw RuleError("'\(text)' is no host; write it like example.org, *.example.org or nas.local:8080")
        }
        self.name = Glob(Self.normalized(name))
        self.port = port
    }

    private static func split(_ text: String) throws(RuleError) -> (name: String, port: Int?) {
        let tail = text.hasPrefix("[") ? text.drop { $0 != "]" }.dropFirst() : text[...]
        guard let colon = tail.firstIndex(of: ":") else { return (text, nil) }
        let digits = tail[tail.index(after: colon)...]
        guard !digits.contains(":") else { throw RuleError("'\(text)' is no host; an IPv6 address stands in brackets, such as [::1]") }
        guard let port = ASCII.decimal(digits.utf8), 1...65535 ~= port else {
            throw RuleError("'\(text)' has no port of 1 to 65535 behind the colon; write it like nas.local:8080")
        }
        return (String(text[..<colon]), Int(port))
    }

    private static func isName(_ name: String) -> Bool {
        if name.hasPrefix("[") { return name.hasSuffix("]") && name.dropFirst().dropLast().utf8.allSatisfy { ASCII.hexValue($0) != nil || "*:.".utf8.contains($0) } }
        let isPlain = name.utf8.allSatisfy { ASCII.isLetter($0) || ASCII.isDigit($0) || "*-._".utf8.contains($0) }
        return isPlain && name.utf8.contains { $0 != UInt8(ascii: ".") }
    }

    /// As `AddressPolicy` has it: lower case, and without the dot that makes a name absolute.
    private static func normalized(_ name: String) -> String {
        let name = ASCII.lowercased(name)
        return name.utf8.last == UInt8(ascii: ".") ? String(name.dropLast()) : name
    }

    func matches(_ url: OriginURL) -> Bool {
        (port == nil || port == url.port ?? url.scheme.defaultPort) && name.matches(Array(Self.normalized(url.host).utf8))
    }
}
