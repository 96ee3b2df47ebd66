/// Matches titles of episodes: a part of the title, or all of it if the pattern has a `*`, which stands for any text.
/// Case does not matter.
package struct TitlePattern: Sendable, Equatable {
    /// Characters.
    static let longest = 200

    /// The pattern as it was written.
    package let text: String
    private let parts: [String]

    /// nil if the pattern is empty or too long.
    package init?(_ text: String) {
        guard !text.allSatisfy(\.isWhitespace), text.count <= Self.longest else { return nil }
        self.text = text
        parts = text.lowercased().split(separator: "*", omittingEmptySubsequences: false).map(String.init)
    }

    /// Whether a title matches. A missing title matches only a pattern of nothing but `*`.
    package func matches(_ title: String?) -> Bool {
        let title = (title ?? "").lowercased()
        guard let first = parts.first, let last = parts.last, parts.count > 1 else {
            return title.contains(parts.first ?? "")
        }
        guard title.hasPrefix(first) else { return false }
        var rest = title.dropFirst(first.count)
        // The first place is the best for each part: more text is left for the others.
        for part in parts.dropFirst().dropLast() where !part.isEmpty {
            guard let found = rest.firstRange(of: part) else { return false }
            rest = rest[found.upperBound...]
        }
        return rest.hasSuffix(last)
    }
}
