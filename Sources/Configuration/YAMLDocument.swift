internal import Yams

/// A YAML file of keys and values, with the place of each.
struct YAMLDocument {
    /// Both count from 1; columns in Unicode scalars.
    struct Place: Equatable {
        let line: Int
        let column: Int
    }

    struct Value {
        enum Content {
            case text(String)
            /// A key with nothing after it, `~` or `null`.
            case nothing
            case list([Value])
            case mapping(Mapping)

            var isNothing: Bool { if case .nothing = self { true } else { false } }
        }

        let place: Place
        let content: Content
    }

    struct Entry {
        let key: String
        let place: Place
        let value: Value
    }

    struct Mapping {
        /// In their order; of a repeated key, the first.
        fileprivate(set) var entries: [Entry] = []
        /// Repetitions of a key, with the place of the first.
        fileprivate(set) var repeated: [(Entry, first: Place)] = []
    }

    /// Why the text cannot be read.
    struct SyntaxError: Error {
        let place: Place
        let reason: String
    }

    /// Empty for a file without settings.
    let root: Mapping

    init(_ bytes: [UInt8]) throws(SyntaxError) {
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw SyntaxError(
                place: Self.endOfText(bytes), reason: "the file is not UTF-8; save it in that encoding")
        }
        // A byte order mark, which some editors write.
        var source = YAMLSource(
            text.unicodeScalars.first == "\u{FEFF}" ? String(text.unicodeScalars.dropFirst()) : text)
        guard let node = try source.compose(), !node.isNothing else {
            root = Mapping()
            return
        }
        guard case .mapping(let mapping) = node else {
            throw SyntaxError(
                place: node.place,
                reason: "the file has no settings; write them as key: value, such as listen: 127.0.0.1:7335")
        }
        var reader = YAMLReader(source: source)
        root = try reader.mapping(mapping)
    }

    /// Where the valid UTF-8 ends.
    private static func endOfText(_ bytes: [UInt8]) -> Place {
        var (decoder, iterator) = (UTF8(), bytes.makeIterator())
        var place = (line: 1, column: 1)
        while case .scalarValue(let scalar) = decoder.decode(&iterator) {
            place = scalar == "\n" ? (place.line + 1, 1) : (place.line, place.column + 1)
        }
        return Place(line: place.line, column: place.column)
    }
}

private extension Node {
    var place: YAMLDocument.Place { YAMLDocument.Place(line: mark?.line ?? 1, column: mark?.column ?? 1) }

    var isNothing: Bool {
        guard case .scalar(let scalar) = self, scalar.style == .plain else { return false }
        return ["", "~", "null", "Null", "NULL"].contains(scalar.string)
    }
}

/// Makes values of the nodes that the parser has composed.
private struct YAMLReader {
    let source: YAMLSource
    private var count = 0

    /// Aliases of aliases can expand a short file to more than fits into memory.
    private static let mostValues = 100_000

    init(source: YAMLSource) { self.source = source }

    mutating func mapping(_ node: Node.Mapping) throws(YAMLDocument.SyntaxError) -> YAMLDocument.Mapping {
        var mapping = YAMLDocument.Mapping()
        var places: [String: YAMLDocument.Place] = [:]
        for (key, value) in node {
            guard case .scalar(let scalar) = key else {
                throw YAMLDocument.SyntaxError(place: key.place, reason: "a key must be a plain word; write key: value")
            }
            let entry = YAMLDocument.Entry(
                key: source.originalKey(scalar.string), place: key.place, value: try self.value(value))
            if let first = places[entry.key] {
                mapping.repeated.append((entry, first))
            } else {
                places[entry.key] = entry.place
                mapping.entries.append(entry)
            }
        }
        return mapping
    }

    private mutating func value(_ node: Node) throws(YAMLDocument.SyntaxError) -> YAMLDocument.Value {
        count += 1
        guard count <= Self.mostValues else {
            throw YAMLDocument.SyntaxError(place: node.place, reason: "the file has too many values; shorten it")
        }
        return YAMLDocument.Value(place: node.place, content: try content(node))
    }

    private mutating func content(_ node: Node) throws(YAMLDocument.SyntaxError) -> YAMLDocument.Value.Content {
        if node.isNothing { return .nothing }
        switch node {
        case .scalar(let scalar): return .text(scalar.string)
        case .sequence(let sequence):
            var values: [YAMLDocument.Value] = []
            for element in sequence { values.append(try value(element)) }
            return .list(values)
        case .mapping(let mapping): return .mapping(try self.mapping(mapping))
        case .alias:
            throw YAMLDocument.SyntaxError(
                place: node.place, reason: "aliases are not supported; write the value")
        }
    }
}

/// The text for the parser, which gives up at the first repeated key of a mapping. To report the rest of the file too,
/// the key is replaced by one of the same length, so that nothing moves, and the text is parsed again.
private struct YAMLSource {
    private var scalars: [Unicode.Scalar]
    private var originals: [String: String] = [:]

    init(_ text: String) { scalars = Array(text.unicodeScalars) }

    /// The name of a key in the file.
    func originalKey(_ key: String) -> String { originals[key] ?? key }

    private static let mostRepetitions = 100

    /// - Returns: nil for a file with nothing but comments.
    mutating func compose() throws(YAMLDocument.SyntaxError) -> Node? {
        while true {
            do {
                return try Parser(yaml: text, resolver: .basic, encoding: .utf8).singleRoot()
            } catch YamlError.duplicatedKeysInMapping(let keys, let context) {
                let place = YAMLDocument.Place(line: context.mark.line, column: context.mark.column)
                let key = keys.first ?? ""
                guard originals.count < Self.mostRepetitions, rename(key, at: place) else {
                    throw YAMLDocument.SyntaxError(
                        place: place, reason: "the key \(originalKey(key)) is repeated; remove one of them")
                }
            } catch {
                throw syntaxError(error)
            }
        }
    }

    private var text: String {
        var view = String.UnicodeScalarView()
        view.append(contentsOf: scalars)
        return String(view)
    }

    /// - Returns: false if the key is written otherwise than it reads, such as with escapes.
    private mutating func rename(_ key: String, at place: YAMLDocument.Place) -> Bool {
        let letters = Array(key.unicodeScalars)
        // Of the private use area.
        guard var start = index(of: place), !letters.isEmpty, let sign = Unicode.Scalar(0xE000 + originals.count) else {
            return false
        }
        if start < scalars.count, scalars[start] == "\"" || scalars[start] == "'" { start += 1 }
        let range = start..<start + letters.count
        guard range.upperBound <= scalars.count, scalars[range].elementsEqual(letters) else { return false }
        scalars.replaceSubrange(range, with: letters.map { _ in sign })
        originals[String(repeating: Character(sign), count: letters.count)] = originalKey(key)
        return true
    }

    private func index(of place: YAMLDocument.Place) -> Int? {
        var (line, start) = (1, 0)
        while line < place.line {
            guard let end = scalars[start...].firstIndex(where: { $0 == "\n" }) else { return nil }
            (line, start) = (line + 1, end + 1)
        }
        return start + place.column - 1
    }

    private func syntaxError(_ error: any Error) -> YAMLDocument.SyntaxError {
        switch error {
        case YamlError.scanner(let context, let problem, let mark, _),
            YamlError.parser(let context, let problem, let mark, _),
            YamlError.composer(let context, let problem, let mark, _):
            let place = YAMLDocument.Place(line: mark.line, column: mark.column)
            if let index = index(of: place), index < scalars.count, scalars[index] == "\t" {
                return YAMLDocument.SyntaxError(place: place, reason: "YAML does not allow a tab here; use spaces")
            }
            if problem.contains("alias") || context?.text.contains("alias") == true {
                return YAMLDocument.SyntaxError(
                    place: place, reason: "a value that begins with * must be quoted; write it like \"*.example.org\""
                )
            }
            let during = context.map { " \($0.text) (line \($0.mark.line))" } ?? ""
            return YAMLDocument.SyntaxError(
                place: place, reason: "this is not YAML: \(problem)\(during); write each setting as key: value")
        case YamlError.reader(let problem, let offset, _, let yaml):
            return YAMLDocument.SyntaxError(
                place: Self.place(offset ?? 0, in: yaml), reason: "this is not YAML: \(problem); remove what is there")
        default:
            return YAMLDocument.SyntaxError(
                place: YAMLDocument.Place(line: 1, column: 1), reason: "this is not YAML: \(error)")
        }
    }

    /// - Parameter offset: in characters.
    private static func place(_ offset: Int, in text: String) -> YAMLDocument.Place {
        let lines = text.prefix(offset).split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
        return YAMLDocument.Place(line: max(1, lines.count), column: (lines.last?.unicodeScalars.count ?? 0) + 1)
    }
}
