/// What is wrong with a part of a rule, in one line that tells what to write instead.
package struct RuleError: Error, Sendable, Equatable, CustomStringConvertible {
    package let reason: String
    /// The key of the effect that cannot be, where its value alone is right.
    package let key: String?

    package init(_ reason: String, key: String? = nil) {
        self.reason = reason
        self.key = key
    }

    package var description: String { reason }
}
