/// Header field lines in the order in which they were received or will be sent; names are compared without regard
/// to case (RFC 9110 §5).
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

    /// The first value of the field; nil if absent.
    package subscript(_ name: String) -> String? {
        lines.first { $0.isNamed(name) }?.value
    }

    package func all(_ name: String) -> [String] {
        lines.lazy.filter { $0.isNamed(name) }.map(\.value)
    }

    /// All values of the field, joined into one list (RFC 9110 §5.3); nil if absent.
    package func combined(_ name: String) -> String? {
        let values = all(name)
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }

    package mutating func append(_ name: String, _ value: String) {
        lines.append(Line(name: name, value: value))
    }

    /// Replaces all lines of the field by one, in the place of the first, or else at the end.
    package mutating func replace(_ name: String, _ value: String) {
        guard let first = lines.firstIndex(where: { $0.isNamed(name) }) else { return append(name, value) }
        lines[first].value = value
        let tail = lines[(first + 1)...].filter { !$0.isNamed(name) }
        lines.replaceSubrange((first + 1)..., with: tail)
    }

    package mutating func remove(_ name: String) {
        lines.removeAll { $0.isNamed(name) }
    }

    /// Removes all of these fields in one pass.
    package mutating func remove(allOf names: FieldNames) {
        lines.removeAll { names.contains($0.name) }
    }
}
