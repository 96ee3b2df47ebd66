/// A pattern in which `*` matches any run of bytes, even an empty one, and every other byte matches itself.
package struct Glob: Sendable, Equatable {
    /// The text between the stars; one piece more than there are stars.
    private let pieces: [[UInt8]]

    package init(_ pattern: String) {
        pieces = pattern.utf8.split(separator: UInt8(ascii: "*"), omittingEmptySubsequences: false).map(Array.init)
    }

    /// Takes each piece where it first occurs, which leaves the most text to the pieces after it: there is no
    /// backtracking.
    package func matches(_ text: [UInt8]) -> Bool {
        guard let first = pieces.first, let last = pieces.last, pieces.count > 1 else { return pieces == [text] }
        guard text.count >= first.count + last.count, text.starts(with: first),
            text.suffix(last.count).elementsEqual(last)
        else { return false }
        var rest = text[first.count..<text.count - last.count]
        for piece in pieces.dropFirst().dropLast() {
            guard let end = Self.end(of: piece, in: rest) else { return false }
            rest = rest[end...]
        }
        return true
    }

    private static func end(of piece: [UInt8], in text: ArraySlice<UInt8>) -> Int? {
        guard text.count >= piece.count else { return nil }
        let start = (text.startIndex...text.endIndex - piece.count).first {
            text[$0..<$0 + piece.count].elementsEqual(piece)
        }
        return start.map { $0 + piece.count }
    }
}
