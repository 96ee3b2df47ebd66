/// Header field lines in the order in which they came or will go; names are compared without regard to case (RFC 9110
/// §5).
package struct HeaderFields: Sendable, Equatable {
    package struct Line: Sendable, Equatable {
        package var name: String
        package var value: String

        package init(name: String, value: String) {
            self.name = name
            self.value = value
        }

        func isNamed(_ other: String) -> Bool { ASCII.equalIgnoringCase(name, other) }
    }

    package var lines: [Line]

    package init(_ lines: [Line] = []) { self.lines = lines }

    /// The first value of that name; nil where there is none.
    package subscript(_ name: String) -> String? {
        lines.first { $0.isNamed(name) }?.value
    }

    package func all(_ name: String) -> [String] {
        lines.lazy.filter { $0.isNamed(name) }.map(\.value)
    }

    /// All values of that name as the one list that they mean together (RFC 9110 §5.3); nil where there is none.
    package func combined(_ name: String) -> String? {
        let values = all(name)
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }

    package mutating func append(_ name: String, _ value: String) {
        lines.append(Line(name: name, value: value))
    }

    /// Leaves one line of that name: in the place of the first that was there, else at the end.
    package mutating func replace(_ name: String, _ value: String) {
        guard let first = lines.firstIndex(where: { $0.isNamed(name) }) else { return append(name, value) }
        lines[first].value = value
        let tail = lines[(first + 1)...].filter { !$0.isNamed(name) }
        lines.replaceSubrange((first + 1)..., with: tail)
    }

    package mutating func remove(_ name: String) {
        lines.removeAll { $0.isNamed(name) }
    }

    /// One pass, however many names there are.
    package mutating func remove(allOf names: FieldNames) {
        lines.removeAll { names.contains($0.name) }
    }
}
