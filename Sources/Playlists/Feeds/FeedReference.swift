import CachePolicy
import HTTPModel

/// An address in a feed, before it is resolved to a URL.
struct FeedReference: Equatable {
    /// The address in ASCII, as players send it.
    let text: String
    /// Whether it contains U+FFFD, which stands for bytes of an unknown encoding: nobody knows the real address.
    let isDamaged: Bool

    /// - Parameter written: the address from the parser, with entities replaced. Removes white space around it and line
    ///   breaks in it, and decodes ampersands that were escaped twice (`&amp;amp;`).
    init?(_ written: String) {
        let bytes = written.utf8.filter { !Self.isLineBreak($0) }
        guard bytes.contains(where: { !ASCII.isXMLSpace($0) }), bytes.count < FeedLimits.text else { return nil }
        text = Reference.text(bytes).replacing("&amp;", with: "&")
        isDamaged = bytes.contains(0xEF) && written.unicodeScalars.contains("\u{FFFD}")
    }

    /// Reads the address of a feed. `feed://host/path` and `feed:https://host/path`, from older browsers and podcast
    /// apps, become HTTP addresses.
    init?(feed written: String) {
        let text = String(ASCII.trimmed(written))
        let scheme = ["feed:", "pcast:", "podcast:", "itpc:"].first { ASCII.begins(text, with: $0) }
        let rest = String(text.utf8.dropFirst(scheme?.utf8.count ?? 0)) ?? text
        self.init(scheme != nil && rest.hasPrefix("//") ? "http:" + rest : rest)
    }

    func url(at base: FeedElement.Base) -> OriginURL? {
        guard !isDamaged else { return nil }
        return base.resolving(text).flatMap { $0.absolute.utf8.count <= FeedLimits.text ? $0 : nil }
    }

    /// Why the address cannot be fetched.
    var fault: SkippedItem.Reason {
        if text.contains("\\") { return .localFile }
        let scheme = ASCII.lowercased(text.prefix { $0 != ":" && $0 != "/" && $0 != "?" })
        guard scheme.utf8.count < text.utf8.count, text.utf8.dropFirst(scheme.utf8.count).first == ASCII.colon else {
            return .address(shown)
        }
        if scheme.utf8.count == 1 { return .localFile }
        return scheme == "http" || scheme == "https" ? .address(shown) : .scheme(String(scheme.prefix(32)))
    }

    /// The address for messages, without anything that may be a password.
    private var shown: String { text.contains("@") ? "it has credentials" : String(text.prefix(100)) }

    private static func isLineBreak(_ byte: UInt8) -> Bool {
        byte == ASCII.lineFeed || byte == ASCII.carriageReturn || byte == ASCII.tab
    }
}
