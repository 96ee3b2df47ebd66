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

        /// The length alone, which is compared here, tells most names apart.
        func isNamed(_ other: String) -> Bool {
            name.utf8.count == other.utf8.count && ASCII.equalIgnoringCase(name, other)
        }

        /// Appends the line as it is sent, ended by CRLF.
        package func write(to bytes: inout [UInt8]) {
            var (name, value) = (name, value)
            name.withUTF8 { bytes.append(contentsOf: $0) }
            bytes.append(": ")
            value.withUTF8 { bytes.append(contentsOf: $0) }
            bytes.append("\r\n")
        }
    }

    package var lines: [Line]

    package init(_ lines: [Line] = []) { self.lines = lines }

    /// The first value of the field; nil if absent.
    package subscript(_ name: String) -> String? {
        for place in lines.indices where lines[place].isNamed(name) { return lines[place].value }
        return nil
    }

    package func all(_ name: String) -> [String] {
        lines.lazy.filter { $0.isNamed(name) }.map(\.value)
    }

    /// All values of the field, joined into one list (RFC 9110 §5.3); nil if absent.
    package func combined(_ name: String) -> String? {
        guard let first = lines.firstIndex(where: { $0.isNamed(name) }) else { return nil }
        var list = lines[first].value
        for line in lines[first...].dropFirst() where line.isNamed(name) { list += ", " + line.value }
        return list
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
