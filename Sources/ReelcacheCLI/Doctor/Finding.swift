/// A result of the doctor about one thing.
///
/// | term | meaning |
/// |---|---|
/// | fact | an observation of the machine, the cache or an origin: a value, collected in `Examination` |
/// | check | a pure function from facts to findings |
/// | finding | one line: the state, and what to do |
package struct Finding: Sendable, Equatable, Encodable {
    package enum Severity: String, Sendable, Encodable, Comparable, CaseIterable {
        case ok, warning, problem

        package static func < (a: Severity, b: Severity) -> Bool { a.rank < b.rank }

        private var rank: Int { Self.allCases.firstIndex(of: self) ?? 0 }
    }

    /// The examined thing, in a word or two.
    package let check: String
    package let severity: Severity
    package let text: String
    /// What to do; nil if nothing has to be done.
    package let advice: String?

    static func ok(_ check: String, _ text: String) -> Finding {
        Finding(check: check, severity: .ok, text: text, advice: nil)
    }

    static func warning(_ check: String, _ text: String, _ advice: String) -> Finding {
        Finding(check: check, severity: .warning, text: text, advice: advice)
    }

    static func problem(_ check: String, _ text: String, _ advice: String) -> Finding {
        Finding(check: check, severity: .problem, text: text, advice: advice)
    }

    /// The finding as a line for people.
    package var line: String {
        let name = severity.rawValue
        let spaces = String(repeating: " ", count: max(1, 9 - name.count)) // no trap: short names
        return "\(name)\(spaces)\(check): \(text)" + (advice.map { "; \($0)" } ?? "")
    }
}
