/// This proxy's name among those that a message has passed (RFC 9110 §7.6.3), by which it knows what comes from itself.
package struct Via: Sendable, Equatable {
    /// A token.
    package let pseudonym: String

    package init(pseudonym: String) { self.pseudonym = pseudonym }

    /// What this proxy adds to the field.
    package var element: String { "1.1 " + pseudonym }

    /// Whether a message has passed here before.
    /// - Parameter field: all field lines, joined by commas.
    package func isNamed(in field: String) -> Bool {
        field.utf8.split(separator: ASCII.comma).contains { element in
            // received-protocol, then received-by, then perhaps a comment.
            let words = element.split { ASCII.isOptionalSpace($0) }
            return words.count >= 2 && ASCII.equalIgnoringCase(words[1], pseudonym.utf8)
        }
    }
}
