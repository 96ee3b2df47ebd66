import CachePolicy
import Foundation
import HTTPModel

/// A resource in an archive, as JSON: everything but its bytes. Decoded, it is somebody else's word: `checked` makes a
/// resource of it.
package struct ArchiveHead: Codable, Sendable, Equatable {
    /// The identifier of the generation in the cache that it is from: 16 hexadecimal digits.
    package var generation: String
    /// The cache key.
    package var url: String
    package var finalURL: String
    package var status: Int
    /// Names and values.
    package var fields: [[String]]
    package var selecting: [[String?]]
    package var isPublic: Bool
    package var length: Int64
    package var chunkSize: Int64
    /// Seconds since 1970, and the age at that time.
    package var storedAt: Int64
    package var validatedAt: Int64
    package var initialAge: Int64
    /// Microseconds since 1970.
    package var lastAccess: Int64
    package var isPinned: Bool
    package var isDownloaded: Bool
    /// The cache key of the presentation that it is a part of.
    package var whole: String?
    /// The number of bytes that are cached.
    package var cached: Int64
    /// Where these are, unless that is everything, or too many ranges: the first byte of each and the byte after its
    /// last, alternating.
    package var present: [Int64]?

    private enum CodingKeys: String, CodingKey {
        case generation, url, status, fields, selecting, length, whole, cached, present
        case finalURL = "final_url"
        case isPublic = "public"
        case chunkSize = "chunk_size"
        case storedAt = "stored_at"
        case validatedAt = "validated_at"
        case initialAge = "initial_age"
        case lastAccess = "last_access"
        case isPinned = "pinned"
        case isDownloaded = "downloaded"
    }

    /// The most ranges in `present`.
    private static let mostRanges = 1000

    /// - Parameter ranges: what is cached, in order.
    init(
        _ row: CacheIndex.GenerationRow, present ranges: [Range<Int64>], lastAccess: Int64, kept: CacheIndex.Kept
    ) {
        let head = row.head
        generation = row.id.description
        (url, finalURL, status, isPublic) = (row.key.text, head.finalURL, head.status, head.isPublic)
        fields = head.fields.lines.map { [$0.name, $0.value] }
        selecting = head.variant.fields.map { [$0.name, $0.value] }
        (length, chunkSize) = (row.length, row.geometry.chunkSize)
        (storedAt, validatedAt, initialAge) = (head.storedAt, head.times.validatedAt, head.times.initialAge)
        (self.lastAccess, isPinned, isDownloaded) = (lastAccess, kept.isPinned, kept.isDownloaded)
        whole = row.whole?.text
        cached = ranges.reduce(0) { $0 +| ($1.upperBound -| $1.lowerBound) }
        present =
            cached == length || ranges.count > Self.mostRanges
            ? nil : ranges.flatMap { [$0.lowerBound, $0.upperBound] }
    }

    /// One line of JSON, without a line feed.
    package var line: [UInt8] {
        get throws {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            return [UInt8](try encoder.encode(self))
        }
    }

    package init(line: some Sequence<UInt8>) throws { self = try JSONDecoder().decode(Self.self, from: Data(line)) }
}

/// A resource in an archive whose values are valid and within their bounds.
struct ArchivedResource: Sendable {
    let key: CacheKey
    let head: GenerationHead
    let length: Int64
    let geometry: ChunkGeometry
    /// What the archive has of it, in order; nil if that is not known exactly, or if it is everything.
    let present: [Range<Int64>]?
    let cached: Int64
    /// Microseconds since 1970.
    let lastAccess: Int64
    let kept: CacheIndex.Kept
    let whole: CacheKey?

    var isComplete: Bool { cached == length }
    /// Files, their lists of parts and the index need some room beside the chunks.
    var bytesWithOverhead: Int64 { cached +| 64 << 10 }
}

/// What is wrong with a head.
struct ArchiveHeadDamage: Error, CustomStringConvertible {
    let description: String
}

extension ArchiveHead {
    /// Plausible times, in seconds since 1970.
    private static let times: ClosedRange<Int64> = 0...1 << 40

    /// - Parameter now: microseconds since 1970: nothing was read or validated later.
    func checked(now: Int64) throws(ArchiveHeadDamage) -> ArchivedResource {
        let variant = try checkedVariant()
        guard let geometry = ChunkGeometry(chunkSize: chunkSize) else { throw .init(description: "its chunk size") }
        guard 1...Generation.longest ~= length else { throw .init(description: "its length") }
        guard GenerationID(fileName: generation)?.description == generation else {
            throw .init(description: "the name of its version")
        }
        // no trap: the length is at least 1
        guard 1...length ~= cached else { throw .init(description: "the number of its cached bytes") }
        return ArchivedResource(
            key: try checkedKey(variant), head: try checkedHead(variant, now: now / 1_000_000), length: length,
            geometry: geometry, present: try checkedPresent(), cached: cached, lastAccess: min(max(0, lastAccess), now),
            kept: CacheIndex.Kept(isPinned: isPinned, isDownloaded: isDownloaded),
            whole: try whole.map { text throws(ArchiveHeadDamage) in
                guard Self.isURL(text) else { throw .init(description: "the presentation that it is a part of") }
                return CacheKey(text: text)
            })
    }

    /// Whether a request can find it in another cache: a fingerprint of credentials is only known in its own.
    func isPortable(now: Int64) -> Bool { (try? checked(now: now)) != nil }

    private func checkedVariant() throws(ArchiveHeadDamage) -> Variant {
        guard selecting.count <= Variant.mostFields else { throw .init(description: "the fields that selected it") }
        let fields = selecting.compactMap { pair -> Variant.Field? in
            guard pair.count == 2, let name = pair[0], !name.isEmpty, name.utf8.allSatisfy(ASCII.isToken),
                name == ASCII.lowercased(name[...]),
                // Fingerprints begin with a space.
                pair[1]?.hasPrefix(" ") != true
            else { return nil }
            return Variant.Field(name: name, value: pair[1])
        }
        guard fields.count == selecting.count else { throw .init(description: "the fields that selected it") }
        return Variant(fields)
    }

    /// The first answer of a resource has the URL as its key, other variants the selecting fields after it.
    private func checkedKey(_ variant: Variant) throws(ArchiveHeadDamage) -> CacheKey {
        let base = CacheKey(text: String(url.prefix { $0 != " " }))
        guard Self.isURL(base.text), url == base.text || url == variant.variantKey(of: base).text else {
            throw .init(description: "its URL")
        }
        return CacheKey(text: url)
    }

    /// Whether a text is a URL in the spelling of cache keys.
    private static func isURL(_ text: String) -> Bool {
        (try? OriginURL(url: text))?.cacheKey.text == text
    }

    private func checkedHead(_ variant: Variant, now: Int64) throws(ArchiveHeadDamage) -> GenerationHead {
        let lines = fields.compactMap { $0.count == 2 ? HeaderFields.Line(name: $0[0], value: $0[1]) : nil }
        guard lines.count == fields.count, lines.allSatisfy(IndexRows.isField) else {
            throw .init(description: "its header fields")
        }
        // Whoever wrote the archive must not frame this cache's responses.
        var fields = HeaderFields(lines)
        fields.removeUnstored()
        // RFC 9110 §6.6.1: without it, the response gets its own.
        if fields["Date"].flatMap(HTTPDate.parse) == nil { fields.remove("Date") }
        // RFC 9111 §4.1: no request matches `Vary: *`.
        guard fields.canBeKept, Variant.canBeMatched(fields) else { throw .init(description: "its header fields") }
        // Media is stored as the response to a plain GET, whatever parts it came in.
        guard status == 200 else { throw .init(description: "its status") }
        guard finalURL.utf8.count <= 1 << 16, !finalURL.utf8.contains(where: { $0 < 0x20 || $0 >= 0x7F }),
            ["http://", "https://"].contains(where: { ASCII.lowercased(finalURL.prefix($0.count)) == $0 })
        else { throw .init(description: "the URL that answered") }
        guard Self.times ~= storedAt, Self.times ~= validatedAt, initialAge >= 0 else {
            throw .init(description: "its times")
        }
        return GenerationHead(
            status: status, fields: fields.worthKeeping, variant: variant, finalURL: finalURL,
            isPublic: isPublic, storedAt: min(storedAt, now),
            times: ResponseTimes(validatedAt: min(validatedAt, now), initialAge: initialAge))
    }

    private func checkedPresent() throws(ArchiveHeadDamage) -> [Range<Int64>]? {
        guard let present else { return nil }
        let damage = ArchiveHeadDamage(description: "its ranges")
        guard present.count % 2 == 0, present.count <= 2 * Self.mostRanges else { throw damage }
        var (ranges, end): ([Range<Int64>], Int64) = ([], -1)
        for place in stride(from: 0, to: present.count, by: 2) {
            guard end < present[place], present[place] < present[place + 1], present[place + 1] <= length else {
                throw damage
            }
            ranges.append(present[place]..<present[place + 1]) // no trap: compared above
            end = present[place + 1]
        }
        guard ranges.reduce(0, { $0 +| ($1.upperBound -| $1.lowerBound) }) == cached else { throw damage }
        return ranges
    }
}
