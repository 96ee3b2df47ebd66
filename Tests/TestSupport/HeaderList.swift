import Foundation

/// The header fields of a message in the order of the wire, found by name without regard to case.
package struct HeaderList: Sendable, Equatable, CustomStringConvertible {
    package struct Field: Sendable, Equatable {
        package let name: String
        package let value: String
    }

    package private(set) var fields: [Field] = []

    package init() {}

    /// Parses field lines `name: value`.
    /// - Returns: `nil` when a line has no colon.
    init?(lines: [String]) {
        for line in lines {
            guard let colon = line.firstIndex(of: ":") else { return nil }
            append(String(line[..<colon]), line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces))
        }
    }

    /// The values of all fields of that name joined by a comma, as RFC 9110 §5.3 allows, or `nil` when there is none.
    package subscript(name: String) -> String? {
        let values = all(name)
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }

    /// The values of the fields of that name, one for each line.
    package func all(_ name: String) -> [String] {
        fields.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
    }

    package var description: String { fields.map { "\($0.name): \($0.value)" }.joined(separator: "\n") }

    /// Whether the comma-separated value of `name` has `token`, in any case.
    func hasToken(_ token: String, in name: String) -> Bool {
        guard let value = self[name] else { return false }
        return value.split(separator: ",").contains {
            $0.trimmingCharacters(in: .whitespaces).lowercased() == token.lowercased()
        }
    }

    mutating func append(_ name: String, _ value: String) {
        fields.append(Field(name: name, value: value))
    }

    /// Puts `replacements` in the place of the fields of the same names, and adds those that have no such place.
    mutating func replace(with replacements: [(String, String)]) {
        let names = Set(replacements.map { $0.0.lowercased() })
        fields.removeAll { names.contains($0.name.lowercased()) }
        for (name, value) in replacements { append(name, value) }
    }
}
