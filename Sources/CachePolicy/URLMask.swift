import HTTPModel

/// Masks the secrets in URLs that are shown: `https://***@host/film.mp4?id=7&token=***`.
///
/// A secret is the part of an authority before the `@`, or the value of a parameter with the name of a known
/// secret, in a query, in a fragment, or in a path (`/hdntl=…/`, `;jsessionid=…`). It works on any text that
/// contains URLs, such as a line of a log or of JSON, even if a URL is percent-encoded inside another one.
package struct URLMask: Sendable, Equatable {
    /// Names of parameters that carry secrets, in lower case; `*` matches any run of characters.
    /// `docs/dev/security.md` lists them.
    package static let standardNames = [
        "*access_key*", "*access-key*", "*accesskey*", "*api_key*", "*api-key*", "*apikey*", "*bearer*", "*credential*",
        "*jwt*", "*passwd*",
        "*password*", "*secret*", "*session*", "*signature*", "*token*", "auth", "auth-*", "auth_*", "authkey",
        "authorization", "hash", "hdnea",
        "hdntl", "hdnts", "hmac", "key", "lsig", "md5", "oauth*", "otp", "pass", "policy", "pwd", "sid", "sig", "sign",
        "ticket", "user",
        "username", "verify", "x-auth*",
    ]

    /// The text that replaces a secret.
    package static let replacement = "***"

    package static let standard = URLMask(globs: standardNames.map { Glob($0) })

    private let names: [Glob]

    private init(globs: [Glob]) { names = globs }

    /// - Parameter names: further parameter names; `*` matches any run of characters, and case does not matter.
    /// - Throws: for a name that is not a parameter's.
    package init(adding names: [String]) throws(RuleError) {
        for name in names { _ = try Glob(parameter: name) }
        self.names = Self.standard.names + names.map { Glob(ASCII.lowercased($0)) }
    }

    /// Returns the text with its secrets masked. Masked ones stay as they are.
    package func masked(_ text: String) -> String {
        guard
            text.utf8.contains(where: { $0 == UInt8(ascii: "=") || $0 == UInt8(ascii: "@") || $0 == UInt8(ascii: "%") })
        else { return text }
        return String(decoding: masked(Array(text.utf8)), as: UTF8.self)
    }

    /// Masks UTF-8 text. What a secret hid, such as the end of a user's name, may be one itself once that is masked.
    package func masked(_ text: [UInt8]) -> [UInt8] {
        var text = text
        for _ in 0..<3 {
            let once = maskedOnce(text)
            if once == text { break }
            text = once
        }
        return text
    }

    private func maskedOnce(_ text: [UInt8]) -> [UInt8] {
        var scanner = Scanner(text, isSecret: isSecret)
        var (masked, copied): ([UInt8], Int) = ([], 0)
        while let secret = scanner.next() {
            masked += text[copied..<secret.lowerBound]
            masked += Self.replacement.utf8
            copied = secret.upperBound
        }
        return copied == 0 ? text : masked + text[copied...]
    }

    private func isSecret(_ name: [UInt8]) -> Bool { names.contains { $0.matches(name) } }
}

extension OriginURL {
}

extension URLMask {
    /// Finds the secrets in a text with URLs, from left to right.
    ///
    ///     https://user:pass@host/a;sid=1/b?x=2&token=3#y
    ///             └─────────┘          └         └───    secrets
    private struct Scanner {
        /// A character of a URL, decoded as often as it was percent-encoded: `&`, `%26` and `%2526` are all an
        /// ampersand.
        private struct Unit {
            let byte: UInt8
            /// How many times it is encoded.
            let depth: Int
            let end: Int
        }

        private let text: [UInt8]
        private let isSecret: ([UInt8]) -> Bool
        private var position = 0
        private var isInQuery = false
        /// The characters before `position`, in lower case.
        private var trail: [UInt8] = []

        private static let longestName = 100
        private static let trailLength = 6

        init(_ text: [UInt8], isSecret: @escaping ([UInt8]) -> Bool) { (self.text, self.isSecret) = (text, isSecret) }

        /// The range of the next secret.
        mutating func next() -> Range<Int>? {
            while position < text.count {
                let unit = unit(at: position)
                position = unit.end
                defer { note(unit) }
                guard !Self.endsURL(unit) else {
                    isInQuery = false
                    continue
                }
                guard "?&;#/".utf8.contains(unit.byte) else { continue }
                if unit.byte == UInt8(ascii: "?") || unit.byte == UInt8(ascii: "#") { isInQuery = true }
                if unit.byte == UInt8(ascii: "/"), leadsToAuthority, let secret = userinfo() { return take(secret) }
                if let secret = value() { return take(secret) }
            }
            return nil
        }

        private mutating func take(_ secret: Range<Int>) -> Range<Int> {
            position = secret.upperBound
            return secret
        }

        // MARK: Userinfo (RFC 3986 §3.2.1)

        /// Whether an authority may follow the slash: in `http://`, and in the proxy's own `/http/` and `/http:/`.
        private var leadsToAuthority: Bool {
            let before = trail.reversed().drop { $0 == UInt8(ascii: "/") }
            if before.first == ASCII.colon { return true }
            return ["/http", "/https"].contains { before.starts(with: $0.utf8.reversed()) }
        }

        private func userinfo() -> Range<Int>? {
            var (place, end): (Int, Int?) = (position, nil)
            while place < text.count {
                let unit = unit(at: place)
                if Self.endsURL(unit) || "/?#".utf8.contains(unit.byte) { break }
                if unit.byte == UInt8(ascii: "@") { end = place }
                place = unit.end
            }
            return end.flatMap { $0 > position ? position..<$0 : nil }
        }

        // MARK: Parameters

        /// The value of the parameter that begins here, if its name marks it as a secret.
        private func value() -> Range<Int>? {
            var (name, place): ([UInt8], Int) = ([], position)
            while place < text.count, name.count <= Self.longestName {
                let unit = unit(at: place)
                place = unit.end
                guard unit.byte != UInt8(ascii: "=") else {
                    guard !name.isEmpty, isSecret(name) else { return nil }
                    let end = endOfValue(from: place, depth: unit.depth)
                    return end > place ? place..<end : nil
                }
                guard !Self.endsURL(unit), !"?&;#/".utf8.contains(unit.byte) else { return nil }
                name.append(ASCII.lowercased(unit.byte))
            }
            return nil
        }

        /// - Parameter depth: of the equals sign. Characters that are encoded more often belong to the value.
        private func endOfValue(from start: Int, depth: Int) -> Int {
            let ends = isInQuery ? "&#" : "&#/;?"
            var place = start
            while place < text.count {
                let unit = unit(at: place)
                if Self.endsURL(unit) { break }
                if unit.depth <= depth && ends.utf8.contains(unit.byte) { return place }
                place = unit.end
            }
            // In `https://host/a?token=b: no such host`, the colon belongs to the sentence.
            while place > start + 1, ":,.;)'".utf8.contains(text[place - 1]) { place -= 1 }
            return place
        }

        // MARK: Characters

        private func unit(at place: Int) -> Unit {
            // In JSON, a backslash precedes a quote that is part of a URL.
            if text[place] == ASCII.backslash {
                let isSlash = place + 1 < text.count && text[place + 1] == UInt8(ascii: "/")
                return Unit(
                    byte: isSlash ? text[place + 1] : ASCII.backslash, depth: 0, end: min(place + 2, text.count))
            }
            guard text[place] == UInt8(ascii: "%") else { return Unit(byte: text[place], depth: 0, end: place + 1) }
            var (digits, depth) = (place + 1, 1)
            // `%2526` is `%26`, encoded again.
            while digits + 3 < text.count, text[digits] == UInt8(ascii: "2"), text[digits + 1] == UInt8(ascii: "5"),
                let high = ASCII.hexValue(text[digits + 2]), ASCII.hexValue(text[digits + 3]) != nil, high < 8
            {
                (digits, depth) = (digits + 2, depth + 1)
            }
            guard digits + 1 < text.count, let high = ASCII.hexValue(text[digits]),
                let low = ASCII.hexValue(text[digits + 1])
            else {
                return Unit(byte: text[place], depth: 0, end: place + 1)
            }
            return Unit(byte: high << 4 | low, depth: depth, end: digits + 2)
        }

        /// White space, control characters and quotes that are neither encoded nor escaped.
        private static func endsURL(_ unit: Unit) -> Bool {
            unit.depth == 0 && (unit.byte <= ASCII.space || unit.byte == 0x7F || unit.byte == ASCII.quote)
        }

        private mutating func note(_ unit: Unit) {
            trail.append(ASCII.lowercased(unit.byte))
            if trail.count > Self.trailLength { trail.removeFirst() }
        }
    }
}
