/// This proxy's name in `Via` (RFC 9110 §7.6.3), by which it recognises its own requests.
package struct Via: Sendable, Equatable {
    /// A token.
    package let pseudonym: String

    package init(pseudonym: String) { self.pseudonym = pseudonym }

    /// The element that this proxy adds to the field.
    package var element: String { "1.1 " + pseudonym }

    /// Whether a message has passed this proxy before.
    /// - Parameter field: all field lines, joined by commas.
    package func isNamed(in field: String) -> Bool {
        field.utf8.split(separator: ASCII.comma).contains { element in
            // received-protocol, received-by, and an optional comment.
            let words = element.split { ASCII.isOptionalSpace($0) }
            return words.count >= 2 && ASCII.equalIgnoringCase(words[1], pseudonym.utf8)
        }
    }
}
