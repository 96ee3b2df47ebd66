/// What is wrong with a part of a rule, in one line that tells what to write instead.
package struct RuleError: Error, Sendable, Equatable, CustomStringConvertible {
    package let reason: String

    package init(_ reason: String) { self.reason = reason }

    package var description: String { reason }
}
