import CachePolicy
import HTTPModel
import Playlists

/// The texts of a recording's playlists. Pure.
enum RecordingText {
    /// A media playlist of segments that have arrived, each with its origin's URL, and with an end (RFC 8216
    /// §4.3.3.4).
    /// - Parameter next: the number that follows them in the stream, for an attempt that continues; nil if unknown.
    /// - Throws: if a segment cannot be listed, as something that it needs is not in a file.
    static func media(_ segments: [MediaSegment], next: Int64? = nil) throws(PresentationFault) -> [UInt8] {
        var text = header(segments) + (next.map { "\(nextMark)\($0)\n" } ?? "")
        var (keys, section): ([EncryptionKey], InitializationSection?) = ([], nil)
        for segment in segments {
            if segment.isDiscontinuity { text += "#EXT-X-DISCONTINUITY\n" }
            if segment.initialization != section {
                let own = segment.initialization?.keys ?? []
                if own != keys { text += try keyLines(own) }
                text += try mapLine(segment.initialization)
                (keys, section) = (own, segment.initialization)
            }
            let own = segment.keys.map { $0.withVector(of: segment.number) }
            if own != keys { text += try keyLines(own) }
            keys = own
            text += try lines(segment)
        }
        return Array((text + "#EXT-X-ENDLIST\n").utf8)
    }

    /// Whether a text of so many segments is nearly as long as one that is read may be.
    static func isFull(_ text: [UInt8], segments: Int) -> Bool {
        let tag = Array("\n#EXT-X-".utf8)
        let tags = text.indices.lazy.filter { text[$0] == tag[0] && text[$0...].starts(with: tag) }
        return text.count > PlaylistLimits.bytes / 8 * 7 || segments > PlaylistLimits.listedSegments / 8 * 7
            || tags.count > PlaylistLimits.tags / 8 * 7
    }

    /// Begins a comment, which players ignore (RFC 8216 §4.1).
    private static let nextMark = "#reelcache-next:"

    /// The number of the stream's segment that follows what a text lists; nil if it does not say so.
    static func next(in text: [UInt8]) -> Int64? {
        let header = text.split(separator: UInt8(ascii: "\n"), maxSplits: 16)
        return header.lazy.map { String(decoding: $0, as: UTF8.self) }.first { $0.hasPrefix(nextMark) }
            .flatMap { Int64($0.dropFirst(nextMark.count)) }
    }

    private static func header(_ segments: [MediaSegment]) -> String {
        let longest = segments.map(\.duration).max() ?? .zero
        let target = longest.components.seconds +| (longest.components.attoseconds > 0 ? 1 : 0)
        return """
            #EXTM3U
            #EXT-X-VERSION:7
            #EXT-X-TARGETDURATION:\(max(1, target))
            #EXT-X-MEDIA-SEQUENCE:\(max(0, segments.first?.number ?? 0))
            #EXT-X-PLAYLIST-TYPE:VOD

            """
    }

    /// The lines for a change of keys. If there are no keys any longer, `NONE` ends the previous ones.
    private static func keyLines(_ keys: [EncryptionKey]) throws(PresentationFault) -> String {
        var text = "#EXT-X-KEY:METHOD=NONE\n"
        if !keys.isEmpty { text = "" }
        for key in keys {
            guard let address = key.url?.absolute ?? key.data else {
                throw .notRecordable("it is encrypted for a DRM system, so it cannot be recorded")
            }
            text += "#EXT-X-KEY:METHOD=\(key.method),URI=\"\(address)\""
            if let vector = key.initializationVector { text += ",IV=\(vector)" }
            text += key.format == "identity" ? "\n" : ",KEYFORMAT=\"\(key.format)\"\n"
        }
        return text
    }

    private static func mapLine(_ section: InitializationSection?) throws(PresentationFault) -> String {
        guard let url = section?.url else {
            throw .notRecordable("its initialization section is not in a file, so it cannot be recorded")
        }
        let range = section?.range.map { ",BYTERANGE=\"\($0.count)@\($0.lowerBound)\"" } ?? ""
        return "#EXT-X-MAP:URI=\"\(url.absolute)\"\(range)\n"
    }

    private static func lines(_ segment: MediaSegment) throws(PresentationFault) -> String {
        guard let url = segment.url else {
            throw .notRecordable("a segment is embedded in the playlist, so it cannot be recorded")
        }
        let range = segment.range.map { "#EXT-X-BYTERANGE:\($0.count)@\($0.lowerBound)\n" } ?? ""
        return "#EXTINF:\(seconds(segment.duration)),\n\(range)\(url.absolute)\n"
    }

    /// A duration such as `6.006`, to the nanosecond.
    private static func seconds(_ duration: Duration) -> String {
        let (seconds, rest) = duration.components
        let digits = String(max(0, rest) / 1_000_000_000) // no trap: not 0
        let fraction = String(repeating: "0", count: max(0, 9 - digits.count)) + digits
        let significant = fraction.reversed().drop { $0 == "0" }.reversed()
        return "\(max(0, seconds))" + (significant.isEmpty ? "" : "." + String(significant))
    }

    /// A multivariant playlist that leads only to the recorded media playlists.
    /// - Parameters:
    ///   - kept: the stream's media playlists that are recorded.
    ///   - url: the stream's URL.
    /// - Returns: nil if no variant would be left.
    static func multivariant(
        _ document: PlaylistDocument, keeping kept: Set<OriginURL>, at url: OriginURL, _ name: RecordingName
    ) -> [UInt8]? {
        guard case .hls(let playlist) = document.content,
            let multivariant = playlist.multivariant,
            let removals = try? multivariant.edits(keeping: kept, within: WorkBudget(bytes: document.text.count))
        else { return nil }
        // Its URL has no parameters that only a redirect has added.
        let variables = playlist.queryEdits(at: name.url(of: url))
        let edits = playlist.addresses.compactMap { address -> AddressEdit? in
            guard let url = playlist.url(of: address) else { return nil }
            let target = kept.contains(url) ? name.url(of: url) : url
            return AddressEdit(range: address.range, replacement: target.absolute)
        }
        return (removals + variables + edits).applied(to: document.text)
    }
}

extension EncryptionKey {
    /// The key with an explicit vector. Without one, the vector is the segment's number (RFC 8216 §5.2), which
    /// changes if segments are missing. In counter mode there is none (draft-pantos-hls-rfc8216bis §4.4.4.4).
    fileprivate func withVector(of number: Int64) -> EncryptionKey {
        guard method != "SAMPLE-AES-CTR", needsNoLicence, initializationVector == nil else { return self }
        let digits = String(max(0, number), radix: 16, uppercase: true)
        var key = self
        key.initializationVector = "0x" + String(repeating: "0", count: max(0, 32 - digits.count)) + digits
        return key
    }
}
