import CachePolicy
import HTTPModel

/// Parses an HLS playlist in one pass, line by line.
struct HLSReader {
    let bytes: [UInt8]
    let base: OriginURL
    private let known: [String: String]?
    /// Of the known variables, those that it imports.
    private(set) var imported: [String: String] = [:]
    private let budget: WorkBudget
    private(set) var variables = Variables()
    private(set) var queryVariables: [QueryVariable] = []
    private(set) var addresses: [PlaylistAddress] = []
    private var multivariant = MultivariantReader()
    private var media = MediaReader()
    private var hasMultivariantTags = false
    private var hasMediaTags = false
    private var tagsWithAttributes = 0
    /// What the strings of all lines take: shorter ones are kept in place.
    private var strings = 0

    init(_ bytes: [UInt8], base: OriginURL, importing known: [String: String]?, within budget: WorkBudget) {
        (self.bytes, self.base, self.known, self.budget) = (bytes, base, known, budget)
    }

    /// The memory that all takes that was read, in bytes.
    var weight: Int {
        // no trap: what is in memory
        strings + addresses.capacity * MemoryLayout<PlaylistAddress>.stride
            + (isPlainList ? 0 : media.weight + multivariant.weight)
    }

    /// Whether it has tags of neither kind.
    var isPlainList: Bool { !hasMultivariantTags && !hasMediaTags }

    func content() throws(PlaylistError) -> HLSPlaylist.Content {
        // Packagers write ENDLIST or TARGETDURATION into multivariant playlists, too: segments are what it cannot have.
        if hasMultivariantTags && hasMediaTags && media.hasSegments {
            throw .malformed("the playlist mixes variants and segments")
        }
        if hasMultivariantTags { return .multivariant(multivariant.playlist) }
        return hasMediaTags ? .media(media.finished) : .list
    }

    mutating func read() throws(PlaylistError) {
        // Arrays that grow by doubling take up to three times as much while they do, and keep twice as much.
        let lines = min(HLSLines.addresses(in: bytes), PlaylistLimits.listedSegments)
        addresses.reserveCapacity(lines)
        media.playlist.segments.reserveCapacity(lines)
        for line in HLSLines(bytes) {
            try budget.take(line.whole.count)
            guard !line.content.isEmpty else { continue }
            if line.content.count > 15 { strings += line.content.count + 64 } // no trap: a text's length
            guard line.content.count <= PlaylistLimits.line else {
                throw .tooLarge("the line is too long: \(line.content.count) bytes", line: line.number)
            }
            if bytes[line.content.lowerBound] != UInt8(ascii: "#") {
                try takeAddress(line)
            } else if let (tag, value) = tag(of: line) {
                if let isOfMultivariant = tag.isOfMultivariant { note(isOfMultivariant) }
                try take(tag, value, line)
            }
        }
    }

    /// RFC 8216 §4.1: a line that begins with `#EXT` is a tag; any other `#` begins a comment.
    private func tag(of line: HLSLine) -> (HLSTag, value: Range<Int>)? {
        let text = bytes[line.content].dropFirst()
        let name = text.prefix { $0 != ASCII.colon }
        guard let tag = HLSTag.named[String(decoding: name, as: UTF8.self)] else { return nil }
        return (tag, min(name.endIndex + 1, text.endIndex)..<text.endIndex)
    }

    private mutating func note(_ isOfMultivariant: Bool) {
        if isOfMultivariant { hasMultivariantTags = true } else { hasMediaTags = true }
    }

    // MARK: - Addresses

    private mutating func takeAddress(_ line: HLSLine) throws(PlaylistError) {
        let reference = try reference(line.content, line)
        if multivariant.isWaiting {
            multivariant.take(WrittenAddress(reference: reference, base: base), line)
            addresses.append(PlaylistAddress(range: line.content, reference: reference, role: .variant))
        } else {
            try media.take(reference, line)
            addresses.append(PlaylistAddress(range: line.content, reference: reference, role: .segment))
        }
    }

    private mutating func reference(_ range: Range<Int>, _ line: HLSLine) throws(PlaylistError) -> String {
        Reference.text(try variables.replacing(in: bytes[range], line: line.number, within: budget))
    }

    // MARK: - Tags

    private mutating func take(_ tag: HLSTag, _ value: Range<Int>, _ line: HLSLine) throws(PlaylistError) {
        switch tag {
        case .define: try define(AttributeList(bytes, value, line: line.number), line)
        case .segment, .byteRange, .discontinuity, .discontinuitySequence, .endList, .gap, .iFramesOnly, .mediaSequence,
            .playlistType, .targetDuration:
            try media.take(tag, bytes[value], line.number)
        case .independentSegments, .version: break
        default: try takeAttributes(tag, value, line)
        }
    }

    private mutating func takeAttributes(_ tag: HLSTag, _ value: Range<Int>, _ line: HLSLine) throws(PlaylistError) {
        try countTag(tag, line)
        var values = TagValues(base: base, line: line)
        let roles = tag.addresses
        for attribute in try AttributeList(bytes, value, line: line.number).attributes {
            try budget.take(attribute.whole.count)
            let text = try variables.replacing(in: bytes[attribute.value], line: line.number, within: budget)
            if let role = roles.first(where: { $0.attribute == attribute.name })?.role {
                let reference = Reference.text(text)
                values.add(attribute.name, reference, at: attribute.removal)
                addresses.append(PlaylistAddress(range: attribute.value, reference: reference, role: role))
            } else {
                values.add(attribute.name, String(decoding: text, as: UTF8.self), at: attribute.removal)
            }
        }
        if tag.isOfMultivariant == true { multivariant.take(tag, values) } else { try media.take(tag, values) }
    }

    private mutating func countTag(_ tag: HLSTag, _ line: HLSLine) throws(PlaylistError) {
        tagsWithAttributes += 1
        let most = tag.isOfMultivariant == true ? PlaylistLimits.renditions : PlaylistLimits.tags
        guard tagsWithAttributes <= most else { throw .tooLarge("more than \(most) tags", line: line.number) }
    }

    // MARK: - Variables

    /// draft-pantos-hls-rfc8216bis §4.4.2.3
    private mutating func define(_ list: AttributeList, _ line: HLSLine) throws(PlaylistError) {
        if let name = list["NAME"] {
            guard let value = list["VALUE"] else { throw .malformed("a variable without a value", line: line.number) }
            try variables.define(text(name), as: try replaced(value, line), line: line.number)
        } else if let name = list["IMPORT"] {
            try variables.define(text(name), as: try importedValue(of: text(name), line), line: line.number)
        } else if let name = list["QUERYPARAM"] {
            try defineFromQuery(name, line)
        }
    }

    private func text(_ attribute: AttributeList.Attribute) -> String {
        String(decoding: bytes[attribute.value], as: UTF8.self)
    }

    private mutating func replaced(_ attribute: AttributeList.Attribute, _ line: HLSLine) throws(PlaylistError)
        -> String
    {
        String(
            decoding: try variables.replacing(in: bytes[attribute.value], line: line.number, within: budget),
            as: UTF8.self)
    }

    private mutating func importedValue(of name: String, _ line: HLSLine) throws(PlaylistError) -> String {
        guard let value = known?[name] else {
            throw PlaylistError(
                .missingImport,
                "the variable \(name.prefix(64)) is imported, but the multivariant playlist does not define it",
                line: line.number)
        }
        imported[name] = value
        return value
    }

    private mutating func defineFromQuery(_ attribute: AttributeList.Attribute, _ line: HLSLine) throws(PlaylistError) {
        let name = text(attribute)
        try budget.take(base.pathAndQuery.utf8.count)
        guard let value = QueryVariable.value(of: name, in: base) else {
            throw PlaylistError(
                .undefinedVariable, "the playlist's URL has no parameter \(name.prefix(64)) for the variable",
                line: line.number)
        }
        try variables.define(name, as: value, line: line.number)
        queryVariables.append(QueryVariable(range: attribute.whole, name: name, value: value))
    }
}

/// The attributes of a tag as text, with variables replaced.
struct TagValues {
    let base: OriginURL
    let line: HLSLine
    private var values: [String: String] = [:]
    private var ranges: [String: Range<Int>] = [:]

    init(base: OriginURL, line: HLSLine) {
        self.base = base
        self.line = line
    }

    /// Of duplicates, the first counts: RFC 8216 §4.2 forbids them.
    /// - Parameter range: the range to remove in order to remove the attribute.
    mutating func add(_ name: String, _ value: String, at range: Range<Int>) {
        if values.updateValue(values[name] ?? value, forKey: name) == nil { ranges[name] = range }
    }

    func removal(of name: String) -> Range<Int>? { ranges[name] }

    subscript(_ name: String) -> String? { values[name] }

    func has(_ name: String) -> Bool { values[name] == "YES" }

    /// The address in an attribute; nil if it is missing.
    func address(_ name: String) -> WrittenAddress? {
        values[name].map { WrittenAddress(reference: $0, base: base) }
    }

    func seconds(_ name: String) -> Duration? { values[name].flatMap { MediaNumbers.seconds($0.utf8) } }

    /// RFC 8216 §4.3.2.4. The default format is a key in a file.
    var key: EncryptionKey? {
        guard let method = values["METHOD"], method != "NONE" else { return nil }
        return EncryptionKey(
            method: method, address: address("URI"), initializationVector: values["IV"],
            format: values["KEYFORMAT"] ?? "identity")
    }
}
