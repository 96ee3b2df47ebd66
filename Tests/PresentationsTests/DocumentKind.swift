import CachePolicy

@testable import Playlists

/// Documents in which much stands beside much: the kinds of their repeatable parts are those that the parsers know, so
/// that a new one is among them when it is added.
///
///     many × many     n of one part and n of another, in both orders of nesting that they have
///     long × many     one part with a name n times as long, and n of another below it
///     below a long address
struct DocumentKind: Sendable {
    /// A part that can be repeated.
    struct Part: Sendable {
        let name: String
        /// - Parameters:
        ///   - number: from 0.
        ///   - word: stands in each address and text that it has.
        let text: @Sendable (_ number: Int, _ word: String) -> String
        /// Where it stands: two parts of the same place are put into the same one.
        var place: [String] = []
        /// Whether others are put beside it; of two that are not, no pair is made.
        var isSpecial = true

        var hasWord: Bool { text(0, "a") != text(0, "b") }
    }

    let name: String
    let parts: [Part]
    /// The document around the parts: each with the place that it has.
    let document: @Sendable ([(place: [String], text: String)]) -> String
    /// That of all its references.
    var base = "https://cdn.example/v/main"

    /// How many of each part, and in what length.
    struct Amount: Sendable, CustomStringConvertible {
        let kind: DocumentKind
        let first: Part
        let second: Part
        let isLong: Bool
        /// That of the document's own address, in bytes.
        var baseLength = 0

        var description: String {
            baseLength > 0
                ? "\(kind.name): \(first.name) below a long address"
                : "\(kind.name): \(first.name) \(isLong ? "long" : "many") × \(second.name) many"
        }

        var base: String { kind.base.replacing("/v/", with: "/v/" + String(repeating: "x", count: baseLength) + "/") }

        func text(_ count: Int) -> String {
            let word = isLong ? String(repeating: "x", count: count * 8) : "a"
            let firsts = (0..<(isLong ? 1 : count)).map { first.text($0, word) }
            let seconds = (0..<count).map { second.text($0, "b") }
            return kind.document([(first.place, firsts.joined()), (second.place, seconds.joined())])
        }
    }

    /// All pairs of parts, each also with itself; and each below a long address.
    var amounts: [Amount] {
        parts.filter(\.hasWord).map { Amount(kind: self, first: $0, second: $0, isLong: false, baseLength: 8000) }
            + parts.indices.flatMap { first in
                parts.indices.flatMap { second -> [Amount] in
                    guard parts[first].isSpecial else { return [] }
                    let isNew = second >= first || !parts[second].isSpecial
                    let hasLong = parts[first].hasWord && parts[second].isSpecial
                    return ((isNew ? [false] : []) + (hasLong ? [true] : [])).map {
                        Amount(kind: self, first: parts[first], second: parts[second], isLong: $0)
                    }
                }
            }
    }
}

// MARK: - HLS

extension DocumentKind {
    static let hls = [("hls media", false), ("hls multivariant", true)].map { name, isMultivariant in
        let tags = HLSTag.allCases.filter { ($0.isOfMultivariant ?? isMultivariant) == isMultivariant }
        let use = Part(name: "use of a variable") { _, word in "{$v0}\(word)\n" }
        let head = "#EXTM3U\n#EXT-X-DEFINE:NAME=\"v0\",VALUE=\"x\"\n"
        return DocumentKind(
            name: name, parts: tags.map(part) + [Part(name: "address") { _, word in "\(word)\n" }, use],
            document: { parts in
                // Half of them line by line: what follows a tag depends on it.
                let lines = parts.map { $0.text.split(separator: "\n") }
                let blocks = lines.flatMap { $0.prefix($0.count / 2) }, rest = lines.map { $0.dropFirst($0.count / 2) }
                let mixed = (0..<(rest.map(\.count).max() ?? 0)).flatMap { place in
                    rest.flatMap { $0.dropFirst(place).prefix(1) }
                }
                let kind = isMultivariant ? "#EXT-X-STREAM-INF:\nv\n" : "#EXT-X-TARGETDURATION:4\n"
                return head + kind + (blocks + mixed).map { $0 + "\n" }.joined() + (isMultivariant ? "" : "end.ts\n")
            }, base: "https://cdn.example/v/main.m3u8")
    }

    /// A tag with all that its kind may have.
    private static func part(_ tag: HLSTag) -> Part {
        Part(name: tag.rawValue) { number, word in
            let addresses = tag.addresses.map { "\($0.attribute)=\"\(word)\($0.attribute.count)\"" }
            let others: [String] =
                switch tag {
                case .define: ["NAME=\"v\(number + 1)-\(word.prefix(1))\",VALUE=\"\(word)\""]
                case .rendition: ["TYPE=AUDIO,GROUP-ID=\"\(word)\""]
                case .preloadHint: ["TYPE=PART"]
                case .key, .sessionKey: ["METHOD=A,KEYFORMAT=\"\(number % 16)\""]
                case .byteRange: ["4@4"]
                case .part, .map, .renditionReport, .variant, .iFrameVariant, .imageVariant, .sessionData,
                    .contentSteering, .dateRange:
                    []
                default: ["4"]
                }
            return "#\(tag.rawValue):" + (others + addresses).joined(separator: ",") + "\n"
        }
    }
}

// MARK: - MPD

extension DocumentKind {
    /// Each element in its outermost and its innermost place.
    static let mpd = DocumentKind(
        name: "mpd",
        parts: MPDElement.Name.allCases.flatMap { name in
            // The outermost and the innermost.
            Set(
                name.places.sorted { chain(to: $0).count < chain(to: $1).count }.enumerated().filter {
                    $0.offset == 0 || $0.offset == name.places.count - 1
                }.map(\.element)
            ).sorted { $0.rawValue < $1.rawValue }.map { place in
                Part(
                    name: "\(name.rawValue) in \(place.rawValue)",
                    text: { number, word in element(name, number, word) }, place: chain(to: place),
                    isSpecial: name.hasText || !name.addresses.isEmpty
                        || MPDElement.Name.allCases.contains { $0.places.contains(name) })
            }
        },
        document: { parts in
            let tree = parts.reduce(into: Nest()) { $0.add($1.text, at: $1.place[...]) }
            return tree.text(["mediaPresentationDuration=\"PT1H\""])
        }, base: "https://cdn.example/v/main.mpd")

    private static func chain(to place: MPDElement.Name) -> [String] {
        // The innermost one: what many inherit stands beside them.
        let outer: MPDElement.Name? =
            place.places.contains(.adaptationSet) ? .adaptationSet : place.places.min { $0.rawValue < $1.rawValue }
        return (outer.map(chain) ?? []) + [place.rawValue]
    }

    private static func element(_ name: MPDElement.Name, _ number: Int, _ word: String) -> String {
        let addresses = name.addresses.map { " \($0)=\"\(word)$Number$\"" }.joined()
        let others =
            switch name {
            case .timelineEntry: " d=\"1\""
            case .utcTiming: " schemeIdUri=\"urn:mpeg:dash:utc:http-iso:2014\""
            default: ""
            }
        let content = name.hasText ? word + "/" : ""
        return content.isEmpty
            ? "<\(name.rawValue)\(others)\(addresses)/>"
            : "<\(name.rawValue)\(others)\(addresses)>\(content)</\(name.rawValue)>"
    }

    /// Elements within each other, each once.
    private struct Nest {
        private var text = ""
        private var inner: [String: Nest] = [:]

        mutating func add(_ more: String, at place: ArraySlice<String>) {
            guard let first = place.first else { return text += more }
            inner[first, default: Nest()].add(more, at: place.dropFirst())
        }

        func text(_ attributes: [String]) -> String {
            // What is inherited comes before what inherits it.
            text
                + inner.sorted { $0.key > $1.key }.map { name, nest in
                    let own =
                        attributes
                        + (name == MPDElement.Name.segmentTemplate.rawValue
                            ? ["duration=\"2\" media=\"$Number$\""] : [])
                    return "<\(([name] + own).joined(separator: " "))>" + nest.text([]) + "</\(name)>"
                }.joined()
        }
    }
}

// MARK: - Feeds

extension DocumentKind {
    /// Each element, in the feed and in items, beside those with addresses, bases, vocabularies and mistakes.
    static let feeds = [
        feed("rss", "channel", "item", FeedElement.Name.allCases.filter { !$0.isRoot && !$0.isItem }),
        // These differ in how items and their media are called.
        feed("feed", nil, "entry", [.link, .id, .logo]),
        feed("playlist", "trackList", "track", [.location, .identifier, .image]),
    ]

    private static func feed(_ root: String, _ list: String?, _ item: String, _ names: [FeedElement.Name])
        -> DocumentKind
    {
        let elements = names.flatMap { name in
            [
                Part(
                    name: name.rawValue,
                    text: { _, word in element(name, word) + "<\(item)>\(element(name, word))</\(item)>" },
                    isSpecial: !name.addresses.isEmpty),
                Part(
                    name: "\(name.rawValue) in one item", text: { _, word in element(name, word) }, place: [item],
                    isSpecial: false),
            ]
        }
        let others = [
            Part(name: "base") { _, word in "<\(item) xml:base=\"\(word)/\"><link>m.mp3</link></\(item)>" },
            Part(name: "vocabulary") { number, word in "<\(item) xmlns:p\(number)=\"\(word)\"/>" },
            Part(name: "unclosed item") { _, word in "<\(item)><link>\(word)" },
            Part(name: "wrong end") { _, word in "</\(word)>" },
        ]
        return DocumentKind(
            name: root, parts: elements + others,
            document: { parts in
                let inner = parts.map { $0.place.isEmpty ? $0.text : "<\(item)>\($0.text)</\(item)>" }.joined()
                return "<\(root)>" + (list.map { "<\($0)>\(inner)</\($0)>" } ?? inner) + "</\(root)>"
            }, base: "https://cdn.example/v/feed")
    }

    private static func element(_ name: FeedElement.Name, _ word: String) -> String {
        let addresses = name.addresses.map { " \($0)=\"\(word).mp3\"" }.joined()
        return name.hasText || addresses.isEmpty
            ? "<\(name.rawValue)\(addresses)>\(word).mp3</\(name.rawValue)>" : "<\(name.rawValue)\(addresses)/>"
    }

    static let opml = DocumentKind(
        name: "opml",
        parts: [
            Part(name: "folder") { _, word in "<outline text=\"\(word)\">" },
            Part(name: "feed") { number, word in "<outline xmlUrl=\"http://h/\(word)\(number)\"/>" },
        ]
            + FeedElement.attributes.sorted().map { attribute in
                Part(name: attribute) { _, word in "<outline \(attribute)=\"\(word)\"/>" }
            }
            + FeedElement.Name.allCases.filter { !$0.isRoot }.map { name in
                Part(
                    name: name.rawValue, text: { _, word in element(name, word) }, place: name.hasText ? ["head"] : [],
                    isSpecial: false)
            },
        document: { parts in
            let head = parts.filter { !$0.place.isEmpty }.map(\.text).joined()
            let inner = parts.filter(\.place.isEmpty).map(\.text).joined()
            // As many folders as were opened are closed, up to the depth that is read.
            let depth = min(200, inner.split(separator: "\">").count - inner.split(separator: "\"/>").count)
            return "<opml><head>\(head)</head><body>\(inner)" + String(repeating: "</outline>", count: max(0, depth))
                + "</body></opml>"
        })

    static let lists = [
        DocumentKind(
            name: "m3u",
            parts: (FileList.Tag.allCases.map { $0.rawValue + "1," } + ["#x", ""]).map { line in
                Part(name: "line \(line)") { number, word in
                    line.isEmpty ? "\(word)\n" : line + word + "\n\(number)\n"
                }
            } + [Part(name: "directory") { number, word in "\(word)\(number)/f\n" }],
            document: { "\n#EXTM3U8\n" + $0.map(\.text).joined() }),
        DocumentKind(
            name: "pls",
            parts: FileList.Name.allCases.map { name in
                Part(name: name.rawValue) { number, word in
                    "\(name.rawValue)\(number + 1)=\(word)\nFile\(number + 1)=a\n"
                }
            } + [Part(name: "directory") { number, word in "File\(number + 1)=\(word)\(number)/f\n" }],
            document: { "[playlist]\n" + $0.map(\.text).joined() }),
    ]

    static let all = hls + [mpd] + feeds + [opml] + lists
}
