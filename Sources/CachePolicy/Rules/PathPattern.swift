import HTTPModel

extension Glob {
    /// The paths to which a rule applies: `/vod/*`, `*.m4s`. Without the query.
    package init(path text: String) throws(RuleError) {
        guard let first = text.utf8.first, "/*".utf8.contains(first) else {
            throw RuleError("'\(text)' is not a path pattern; begin it with / or *, such as /vod/* or *.mp4")
        }
        guard !text.contains(where: { "?#".contains($0) }) else {
            throw RuleError(
                "'\(text)' is not a path pattern; remove the \(text.contains("?") ? "?" : "#") and all that follows, as a path ends there"
            )
        }
        guard text.utf8.allSatisfy({ $0 > ASCII.space && $0 != 0x7F }) else {
            throw RuleError("'\(text)' contains a space or a control character; percent-encode it, a space as %20")
        }
        self.init(PercentEncoding.normalized(PercentEncoding.encodingNonASCII(text.utf8)))
    }

    /// Whether it matches a part of a URL. All spellings that share a cache key are equal.
    func matches(_ part: Substring) -> Bool { matches(Array(PercentEncoding.normalized(String(part)).utf8)) }
}

extension OriginURL {
    var path: Substring { Substring(pathAndQuery.utf8.prefix { $0 != UInt8(ascii: "?") }) }

    /// With its `?`; empty if the URL has none.
    var query: Substring { Substring(pathAndQuery.utf8.drop { $0 != UInt8(ascii: "?") }) }
}
