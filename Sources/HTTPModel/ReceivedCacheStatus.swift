/// What the caches behind a response say of it: the members of a received `Cache-Status`, nearest the origin first
/// (RFC 9211 §2).
package struct ReceivedCacheStatus: Sendable, Equatable {
    /// What one cache did.
    package struct Member: Sendable, Equatable {
        /// As it was received.
        package fileprivate(set) var text: String
        /// Whether it answered without forwarding the request (§2.1).
        package fileprivate(set) var isHit = false
        /// Whether a server behind it has answered (§2.3).
        package fileprivate(set) var hasForwardStatus = false
        /// The parameter `detail` (§2.8); nil without one. Tokens and strings alike.
        package fileprivate(set) var detail: String?
    }

    /// Not empty.
    package let members: [Member]

    /// The most members that are passed on, and the most bytes in all: a cache behind this one must not choose how much
    /// memory a stored response takes.
    private static let mostMembers = 8
    private static let longest = 512

    /// - Parameter field: all field lines, joined by commas; nil without any.
    /// - Returns: nil if there is none, or if it is not a list of RFC 9651 with names and parameters.
    package init?(parsing field: String?) {
        guard let field else { return nil }
        var scanner = Scanner(field)
        var members: [Member] = []
        scanner.rest.skipOptionalSpace()
        while !scanner.rest.isAtEnd {
            guard let member = scanner.member() else { return nil }
            members.append(member)
            scanner.rest.skipOptionalSpace()
            if scanner.rest.isAtEnd { break }
            guard scanner.rest.take(ASCII.comma) else { return nil }
            scanner.rest.skipOptionalSpace()
            // RFC 9651 §4.2.1: a comma at the end makes it invalid.
            if scanner.rest.isAtEnd { return nil }
        }
        guard !members.isEmpty else { return nil }
        self.members = members
    }

    /// The value that is passed on: the members nearest to this cache, as many as fit; nil if none does.
    package var forwarded: String? {
        var (kept, left): ([String], Int) = ([], Self.longest)
        for member in members.reversed().prefix(Self.mostMembers) {
            left -= member.text.utf8.count + 2
            guard left >= 0 else { break }
            kept.insert(member.text, at: 0)
        }
        return kept.isEmpty ? nil : kept.joined(separator: ", ")
    }
}

extension HeaderFields {
    /// Replaces `Cache-Status` by what is passed on of it, in one line; removes it if it is malformed.
    package mutating func boundCacheStatus() {
        guard let value = combined("Cache-Status") else { return }
        remove("Cache-Status")
        if let forwarded = ReceivedCacheStatus(parsing: value)?.forwarded { append("Cache-Status", forwarded) }
    }
}

extension ReceivedCacheStatus {
    /// Reads items with parameters (RFC 9651 §4.2.3).
    private struct Scanner {
        var rest: FieldScanner

        init(_ text: String) { rest = FieldScanner(text) }

        /// A String or Token with its parameters.
        mutating func member() -> ReceivedCacheStatus.Member? {
            let start = rest.rest
            guard bareItem() == .name else { return nil }
            var member = ReceivedCacheStatus.Member(text: "")
            while rest.take(UInt8(ascii: ";")) {
                _ = rest.take { $0 == ASCII.space }
                let key = String(Substring(rest.take(while: Self.isKey)))
                guard let first = key.utf8.first, !ASCII.isDigit(first), first != UInt8(ascii: "-") else { return nil }
                var (value, text) = (Bare.true, rest.rest.prefix(0))
                if rest.take(UInt8(ascii: "=")) {
                    text = rest.rest
                    guard let item = bareItem() else { return nil }
                    (value, text) = (item, text[..<rest.rest.startIndex])
                }
                switch key {
                case "hit": member.isHit = value == .true
                case "fwd-status": member.hasForwardStatus = value == .number
                case "detail":
                    let quotes = text.first == ASCII.quote ? 1 : 0
                    member.detail = value == .name ? String(Substring(text.dropFirst(quotes).dropLast(quotes))) : nil
                default: break
                }
            }
            member.text = String(Substring(start[..<rest.rest.startIndex]))
            return member
        }

        /// The types of items that make a difference here.
        private enum Bare { case name, number, `true`, other }

        private mutating func bareItem() -> Bare? {
            guard let first = rest.rest.first else { return nil }
            switch first {
            case ASCII.quote: return rest.takeQuotedString() == nil ? nil : .name
            case UInt8(ascii: "?"):
                if rest.take("?1") { return .true }
                return rest.take("?0") ? .other : nil
            case UInt8(ascii: ":"):
                _ = rest.take(UInt8(ascii: ":"))
                _ = rest.take { ASCII.isLetter($0) || ASCII.isDigit($0) || "+/=".utf8.contains($0) }
                return rest.take(UInt8(ascii: ":")) ? .other : nil
            case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
                return rest.take { ASCII.isDigit($0) || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: ".") }.isEmpty
                    ? nil : .number
            case UInt8(ascii: "*"),
                _ where ASCII.isLetter(first):
                return rest.take { ASCII.isToken($0) || $0 == ASCII.colon || $0 == UInt8(ascii: "/") }.isEmpty
                    ? nil : .name
            default: return nil
            }
        }

        /// RFC 9651 §3.1.2
        private static func isKey(_ byte: UInt8) -> Bool {
            UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte || ASCII.isDigit(byte) || "_-.*".utf8.contains(byte)
        }
    }
}
