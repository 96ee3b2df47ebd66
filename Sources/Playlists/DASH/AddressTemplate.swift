import CachePolicy
import HTTPModel

/// The address of a segment as a function of its number or time: `seg-$Number%05d$.m4s` (ISO/IEC 23009-1 §5.3.9.4.4).
struct AddressTemplate: Sendable, Equatable {
    private enum Piece: Sendable, Equatable {
        case text(String)
        case id
        case bandwidth(width: Int)
        case number(width: Int)
        case time(width: Int)
    }

    private let pieces: [Piece]
    /// In bytes.
    let length: Int

    /// Shared by all representations that inherit it.
    /// - Parameter text: the template, in the form of `Reference.text`.
    /// - Throws: for an unknown identifier, or an unmatched `$`.
    init(_ text: String) throws(PlaylistError) {
        var (pieces, literal) = ([Piece](), "")
        // Every second part is between two dollar signs.
        let parts = text.split(separator: "$", omittingEmptySubsequences: false)
        guard parts.count % 2 == 1 else { throw .malformed("the template \(text.prefix(200)) has an unmatched $") }
        for (place, part) in parts.enumerated() {
            guard place % 2 == 1, !part.isEmpty else {
                literal += place % 2 == 0 ? part : "$"
                continue
            }
            if !literal.isEmpty { pieces.append(.text(literal)) }
            literal = ""
            pieces.append(try Self.piece(part))
        }
        if !literal.isEmpty { pieces.append(.text(literal)) }
        (self.pieces, length) = (pieces, text.utf8.count)
    }

    private static func piece(_ identifier: Substring) throws(PlaylistError) -> Piece {
        let name = identifier.prefix { $0 != "%" }
        guard let width = width(identifier.dropFirst(name.count)) else { throw unknown(identifier) }
        switch name {
        case "RepresentationID": return .id
        case "Bandwidth": return .bandwidth(width: width)
        case "Number": return .number(width: width)
        case "Time": return .time(width: width)
        default: throw unknown(identifier)
        }
    }

    private static func unknown(_ identifier: Substring) -> PlaylistError {
        .malformed("a template contains the unknown identifier $\(identifier.prefix(64))$")
    }

    /// Parses `%05d`: zero-padded to this many digits. No address needs more than `widest`.
    private static func width(_ format: Substring) -> Int? {
        if format.isEmpty { return 1 }
        guard format.hasPrefix("%0"), format.hasSuffix("d") else { return nil }
        return ASCII.decimal(format.utf8.dropFirst(2).dropLast(), upTo: widest).map { Int($0) }
    }

    private static let widest: Int64 = 32

    private static func padded(_ number: Int64, _ width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
    }

    /// The reference to a segment of a representation.
    func reference(number: Int64, time: Int64, id: String, bandwidth: Int64?) -> String {
        text(id: id, bandwidth: bandwidth, number: { Self.padded(number, $0) }, time: { Self.padded(time, $0) })
    }

    private func text(
        id: String, bandwidth: Int64?, number: (Int) -> String, time: (Int) -> String
    ) -> String {
        pieces.reduce(into: "") { text, piece in
            switch piece {
            case .text(let piece): text += piece
            case .id: text += Reference.text(Array(id.utf8))
            case .bandwidth(let width): text += Self.padded(bandwidth ?? 0, width)
            case .number(let width): text += number(width)
            case .time(let width): text += time(width)
            }
        }
    }

    /// Whether each segment has its own address.
    var isVariable: Bool {
        pieces.contains {
            switch $0 {
            case .number, .time: true
            case .text, .id, .bandwidth: false
            }
        }
    }

    /// Extracts numbers and times from addresses that a template produced.
    struct Matcher: Sendable {
        private enum Piece {
            case text([UInt8])
            case number, time
        }

        let origin: OriginURL
        private let pieces: [Piece]

        fileprivate init(origin: OriginURL, path: String) {
            self.origin = origin
            pieces = path.split(separator: AddressTemplate.mark, omittingEmptySubsequences: false).enumerated().map {
                place, part in
                place % 2 == 0
                    ? .text(Array(PercentEncoding.normalized(String(part)).utf8)) : part == "number" ? .number : .time
            }
        }

        /// - Returns: nil if the template cannot have produced the address. If two numbers are adjacent, the result
        ///   may still be wrong.
        func values(in url: OriginURL) -> (number: Int64?, time: Int64?)? {
            guard OriginURL.areSameOrigin(url, origin) else { return nil }
            var rest = Array(PercentEncoding.normalized(url.pathAndQuery).utf8)[...]
            var number: Int64?, time: Int64?
            for (place, piece) in pieces.enumerated() {
                guard case .text(let text) = piece else {
                    // The last one has all digits except those with which the following text begins.
                    let digits =
                        place == pieces.count - 2 ? rest.dropLast(tail.count) : rest.prefix(while: ASCII.isDigit)
                    guard let value = ASCII.decimal(digits, upTo: ByteNumber.greatest) else { return nil }
                    rest = rest[digits.endIndex...]
                    if case .number = piece { number = value } else { time = value }
                    continue
                }
                guard rest.starts(with: text) else { return nil }
                rest = rest.dropFirst(text.count)
            }
            return rest.isEmpty ? (number, time) : nil
        }

        private var tail: [UInt8] {
            if case .text(let text)? = pieces.last { text } else { [] }
        }

        /// What all addresses begin and end with, and how many numbers and times are between; `isTime` tells what the
        /// first one is.
        var ends: (head: [UInt8], tail: [UInt8], variables: Int, isTime: Bool) {
            var head: [UInt8] = [], isTime = false
            if case .text(let text)? = pieces.first { head = text }
            if pieces.count > 1, case .time = pieces[1] { isTime = true }
            return (head, tail, pieces.count / 2, isTime)
        }
    }

    /// No address contains it: it has several characters that need no encoding, and a word.
    private static let mark = "~~reelcache~~"

    /// Nil if the template yields no addresses that can be fetched.
    func matcher(at base: OriginURL, id: String, bandwidth: Int64?) -> Matcher? {
        let marked = text(
            id: id, bandwidth: bandwidth, number: { _ in Self.mark + "number" + Self.mark },
            time: { _ in Self.mark + "time" + Self.mark })
        return base.resolving(marked).map { Matcher(origin: $0, path: $0.pathAndQuery) }
    }
}
