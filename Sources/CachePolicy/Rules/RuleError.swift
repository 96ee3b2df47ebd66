/// An error in a part of a rule, in one line that states what to write instead.
package struct RuleError: Error, Sendable, Equatable, CustomStringConvertible {
    package let reason: String
    /// The key of the effect that is not allowed, if its value alone is valid.
    package let key: String?

    package init(_ reason: String, key: String? = nil) {
        self.reason = reason
        self.key = key
    }

    package var description: String { reason }
}
