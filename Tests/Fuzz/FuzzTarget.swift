/// What a parser does with bytes that somebody else wrote, and what has to hold of the result.
///
/// The same targets are run in two ways: by `FuzzTests` over the kept corpus and some mutations of it, and by libFuzzer
/// for as long as wanted (`scripts/fuzz`).
struct FuzzTarget: Sendable {
    let name: String
    /// What to begin with.
    let seeds: [String]
    /// - Throws: `Violation` where something does not hold.
    let run: @Sendable (_ input: [UInt8]) throws -> Void

    static let all = messages + fields + addresses + documents + playlists + feeds
}

/// A promise that a parser has broken. Traps and memory faults need no promise: they end the process.
struct Violation: Error, CustomStringConvertible {
    let description: String
}

/// Checks what has to hold of any input.
func hold(_ condition: Bool, _ promise: @autoclosure () -> String) throws {
    guard condition else { throw Violation(description: promise()) }
}

extension [UInt8] {
    /// As most parsers get it: what is not UTF-8 is replaced.
    var text: String { String(decoding: self, as: UTF8.self) }

    /// Parts that the input itself separates, so that one target can have several arguments.
    var lines: [String] {
        split(separator: 0x0A, omittingEmptySubsequences: false).map { String(decoding: $0, as: UTF8.self) }
    }

    /// The last eight bytes as a number, and what is before them.
    var numberAndRest: (Int64, [UInt8]) {
        (suffix(8).reduce(0) { $0 << 8 | Int64($1) }, Array(dropLast(8)))
    }
}

extension Int64 {
    /// At which arithmetic goes wrong.
    static let edges: [Int64] = [
        .min, .min + 1, -(1 << 60), -1, 0, 1, 65535, 65536, 1 << 31, 1 << 53, 1 << 60, (1 << 60) + 1, .max - 65536,
        .max - 1, .max,
    ]
}
