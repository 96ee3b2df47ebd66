/// A small fixed set of header field names, looked up without regard to case (RFC 9110 §5.1) and without copying.
package struct FieldNames: Sendable, Equatable, ExpressibleByArrayLiteral {
    /// At each index, the names of that many bytes.
    private var byLength: [[String]] = []
    /// A bit for each name, by `bit(of:)`: most names that are looked up are not among these.
    private var bits: UInt64 = 0

    package init(arrayLiteral names: String...) {
        for name in names {
            let length = name.utf8.count
            while byLength.count <= length { byLength.append([]) }
            byLength[length].append(name)
            bits |= Self.bit(of: name)
        }
    }

    package var isEmpty: Bool { bits == 0 }

    /// In the order of their lengths.
    package var all: [String] { byLength.flatMap(\.self) }

    package func contains(_ name: String) -> Bool {
        guard bits & Self.bit(of: name) != 0 else { return false }
        let length = name.utf8.count
        return length < byLength.count && byLength[length].contains { ASCII.equalIgnoringCase($0, name) }
    }

    /// One of 64 bits, by the length and the first letter.
    private static func bit(of name: String) -> UInt64 {
        1 << UInt64((name.utf8.count &* 5 &+ Int((name.utf8.first ?? 0) & 0x1F)) & 63) // no trap: below 64
    }
}
