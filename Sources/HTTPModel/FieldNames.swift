/// A small fixed set of header field names, looked up without regard to case (RFC 9110 §5.1) and without copying.
package struct FieldNames: Sendable, ExpressibleByArrayLiteral {
    /// At each index, the names of that many bytes.
    private var byLength: [[String]] = []

    package init(arrayLiteral names: String...) {
        for name in names {
            let length = name.utf8.count
            while byLength.count <= length { byLength.append([]) }
            byLength[length].append(name)
        }
    }

    /// In the order of their lengths.
    package var all: [String] { byLength.flatMap(\.self) }

    package func contains(_ name: String) -> Bool {
        let length = name.utf8.count
        return length < byLength.count && byLength[length].contains { ASCII.equalIgnoringCase($0, name) }
    }
}
