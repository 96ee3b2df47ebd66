import Administration
import CachePolicy
import ControlAPI
import DiskCache
import Foundation
import HTTPModel
import Reelcache

/// Makes one file of a presentation.
///
/// A single rendition in the container that the file's name asks for is joined byte for byte: segments of a transport
/// stream one after the other, those of fragmented MP4 after their initialization section. Several renditions, and
/// other containers, are joined in this way first, and `ffmpeg` then puts the parts together without encoding.
struct PresentationExport {
    private typealias Rendition = CachedPresentation.Rendition

    private let presentation: CachedPresentation
    private let url: OriginURL
    private let name: String?
    private let interruption: Interruption
    private let proxy: RunningProxy
    /// The proxy's URL at which another URL plays.
    private let played: (OriginURL) throws -> String

    /// - Parameters:
    ///   - name: of the rendition to export; nil for the best one that is complete, with its sound.
    ///   - played: makes the proxy's URL at which another URL plays.
    init(
        _ presentation: CachedPresentation, of url: OriginURL, named name: String?, _ interruption: Interruption,
        _ proxy: RunningProxy, played: @escaping (OriginURL) throws -> String
    ) {
        (self.presentation, self.url, self.name, self.interruption) = (presentation, url, name, interruption)
        (self.proxy, self.played) = (proxy, played)
    }

    /// Whether a file's name asks for the playlist itself.
    static func isPlaylist(_ output: String) -> Bool {
        [".m3u8", ".m3u", ".mpd"].contains { output.lowercased().hasSuffix($0) }
    }

    /// How the file was made.
    enum Method: String {
        /// Parts one after the other.
        case join
        case ffmpeg
    }

    /// - Returns: the bytes of the file, and how it was made.
    func run(_ export: FileExport, to output: String) throws -> (Int64, Method) {
        let wanted = try renditions()
        if wanted.contains(where: Self.mustBePlayed) { return (try play(wanted, export, to: output), .ffmpeg) }
        let containers = try wanted.map { try container($0, beside: output) }
        if wanted.count == 1, Self.fits(wanted[0], containers[0], output) {
            return (try export.write { try join(wanted[0], into: $0, beside: output) }, .join)
        }
        return (try convert(Array(zip(wanted, containers)), export, to: output), .ffmpeg)
    }

    /// Whether its bytes, joined, would not be a film: they are encrypted, or they need several initialization sections,
    /// and the report does not say which segments each of these belongs to.
    private static func mustBePlayed(_ rendition: Rendition) -> Bool {
        rendition.isEncrypted || (rendition.initializations ?? []).count > 1
    }

    // MARK: Which renditions

    private func renditions() throws -> [Rendition] {
        if let name {
            guard let named = presentation.renditions.first(where: { $0.name == name }) else {
                let names = presentation.renditions.map(\.name).joined(separator: "; ")
                throw ControlError("\(url.absolute) has no rendition '\(name)': choose one of \(names)")
            }
            guard named.isComplete else { throw incomplete(named) }
            return [named]
        }
        // Each period has renditions of its own, whose names say so.
        if presentation.kind == "dash", presentation.renditions.contains(where: { $0.name.contains(", period ") }) {
            throw ControlError(
                "\(url.absolute) has several periods, which cannot be joined: choose a --rendition by its name in reelcache show"
            )
        }
        let kind = presentation.renditions.contains { $0.kind == "video" } ? "video" : "audio"
        guard let main = Self.best(kind, presentation.renditions.filter(\.isComplete)) else {
            let best = Self.best(kind, presentation.renditions) ?? presentation.renditions.first
            throw best.map(incomplete) ?? ControlError("\(url.absolute) has no renditions")
        }
        guard kind == "video" else { return [main] }
        let sounds = presentation.renditions.filter { $0.kind == "audio" }
        guard let sound = sounds.first else { return [main] }
        guard let complete = Self.best("audio", sounds.filter(\.isComplete)) else { throw incomplete(sound) }
        return [main, complete]
    }

    private static func best(_ kind: String, _ renditions: [Rendition]) -> Rendition? {
        renditions.filter { $0.kind == kind }.reduce(nil) { best, next in
            best.map { $0.bandwidth ?? 0 >= next.bandwidth ?? 0 } ?? false ? best : next
        }
    }

    private func incomplete(_ rendition: Rendition) -> ControlError {
        let lacking = rendition.segments -| rendition.cachedSegments
        let what =
            rendition.segments == 0
            ? "its playlist is not cached"
            : lacking > 0
                ? "\(lacking.grouped) of \(rendition.segments.of("segment")) are missing"
                : "a key or an initialization section is missing"
        var error = ControlError(
            "\(rendition.name) of \(url.absolute) is not complete, because \(what): fetch it with reelcache prefetch")
        error.lacksSegments = true
        return error
    }

    /// Whether its joined parts are a file of that name.
    private static func fits(_ rendition: Rendition, _ container: MediaContainer, _ output: String) -> Bool {
        let isWhole =
            container == .transportStream || rendition.initializations?.isEmpty == false
            || rendition.segmentList?.count == 1
        return isWhole && container.isNamed(by: output)
    }

    /// The container of a rendition, by its first bytes, else by the names of its segments.
    private func container(_ rendition: Rendition, beside output: String) throws -> MediaContainer {
        var beginning: [UInt8] = []
        if let first = Self.places(rendition).first {
            try withBytes(of: first, beside: output) { source, range in
                beginning = Self.bytes(of: source, range, upTo: MediaContainer.sniffedBytes)
            }
        }
        let path = String((rendition.segmentList?.first?.url ?? "").prefix { $0 != "?" })
        return MediaContainer(
            beginning, path: path, hasInitialization: rendition.initializations?.isEmpty == false)
    }

    // MARK: One file

    /// The initialization section, if there is one, and the segments.
    private static func places(_ rendition: Rendition) -> [PlaceReport] {
        (rendition.initializations ?? [])
            + (rendition.segmentList ?? []).map { PlaceReport(url: $0.url, range: $0.range) }
    }

    private func join(_ rendition: Rendition, into file: UnfinishedFile, beside output: String) throws -> Int64 {
        let progress = ProgressLine()
        defer { progress.clear() }
        var end: Int64 = 0
        for (number, place) in Self.places(rendition).enumerated() {
            guard !interruption.isRequested else { throw ControlError.interrupted }
            try withBytes(of: place, beside: output) { source, range in
                try file.append(number == 0 ? range : Self.withoutHeader(range, of: source), of: source, at: &end)
            }
            progress.show("export", end, of: rendition.cachedBytes)
        }
        return end
    }

    /// Each segment of WebVTT has a header (RFC 8216 §3.5), which would be shown as text: it ends with an empty line.
    private static func withoutHeader(_ range: Range<Int64>, of source: Int32) -> Range<Int64> {
        let beginning = bytes(of: source, range, upTo: 4096)
        guard beginning.starts(with: "WEBVTT".utf8) else { return range }
        let ends = ["\n\n", "\r\n\r\n"].compactMap { beginning.firstRange(of: Array($0.utf8))?.lowerBound }
        let start = ends.min().map { range.lowerBound +| Int64($0) } ?? range.upperBound
        return start..<range.upperBound // no trap: within what was read
    }

    private static func bytes(of source: Int32, _ range: Range<Int64>, upTo most: Int) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: min(most, range.count))
        let count = pread(source, &bytes, bytes.count, off_t(range.lowerBound))
        return Array(bytes.prefix(max(0, count)))
    }

    /// Lends the bytes of a segment, decoded if its origin sent it in a content coding.
    private func withBytes(
        of place: PlaceReport, beside output: String, _ body: @escaping (_ source: Int32, Range<Int64>) throws -> Void
    ) throws {
        let url = try OriginURL(url: place.url), isWanted = { !interruption.isRequested }
        let make = { try UnfinishedFile(in: FileExport.directory(of: output), for: output) }
        try proxy.withFile(url, isWanted: isWanted) { lent in
            guard place.range == nil || lent.codings.isEmpty else {
                throw ControlError("\(url.absolute) was sent in a content coding, of which no part can be decoded")
            }
            try lent.withDecoded(of: url, into: make, isWanted: isWanted) { decoded in
                let source = try UnfinishedFile.open(decoded.path)
                defer { close(source) }
                let whole = 0..<max(0, decoded.length) // no trap: not below 0
                try body(source, (place.range?.range ?? whole).clamped(to: whole))
            }
            guard lent.isHeld() else { throw FileError("the proxy ended in the meantime: try again") }
        }
    }

    // MARK: Through ffmpeg

    /// Has ffmpeg play the renditions through a proxy, which decrypts them.
    private func play(_ renditions: [Rendition], _ export: FileExport, to output: String) throws -> Int64 {
        let playlists = renditions.compactMap(\.url)
        guard playlists.count == renditions.count else {
            throw ControlError(
                "\(url.absolute) is encrypted and plays only with its licence, so it cannot be exported")
        }
        for rendition in renditions where !rendition.isEncrypted { try checkFormat(of: rendition, beside: output) }
        let inputs = try playlists.map { FFmpeg.Input.playlist(try played(try OriginURL(url: $0))) }
        return try withDirectory(beside: output) { try put(inputs, export, to: output, in: $0) }
    }

    /// ffmpeg reads all segments by the first initialization section.
    private func checkFormat(of rendition: Rendition, beside output: String) throws {
        var formats: Set<[UInt8]> = []
        for place in rendition.initializations ?? [] {
            try withBytes(of: place, beside: output) {
                formats.insert(MediaContainer.sampleDescriptions(Self.bytes(of: $0, $1, upTo: 1 << 20)))
            }
        }
        guard formats.count > 1 else { return }
        throw ControlError(
            "the format of \(rendition.name) changes, as at an advertisement, which no file can have: export its .m3u8"
        )
    }

    /// Makes a directory beside the file, where there is room and where blocks can be shared.
    private func withDirectory<Value>(beside output: String, _ body: (String) throws -> Value) throws -> Value {
        let directory = "\(FileExport.directory(of: output))/.reelcache-export-\(UUID().uuidString)"
        try FileManager.default.createDirectory(
            atPath: directory, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        defer { try? FileManager.default.removeItem(atPath: directory) }
        return try body(directory)
    }

    private func convert(
        _ renditions: [(Rendition, MediaContainer)], _ export: FileExport, to output: String
    ) throws -> Int64 {
        try withDirectory(beside: output) { directory in
            var inputs: [FFmpeg.Input] = []
            for (number, (rendition, container)) in renditions.enumerated() {
                let path = "\(directory)/\(number)"
                try FileExport(to: path, replaces: false).write { _ = try join(rendition, into: $0, beside: path) }
                inputs.append(.file(path, container))
            }
            return try put(inputs, export, to: output, in: directory)
        }
    }

    private func put(_ inputs: [FFmpeg.Input], _ export: FileExport, to output: String, in directory: String) throws
        -> Int64
    {
        let suffix = (output as NSString).pathExtension
        let made = "\(directory)/out" + (suffix.isEmpty ? "" : "." + suffix)
        try FFmpeg(interruption).run(inputs, to: made)
        var info = stat()
        guard stat(made, &info) == 0 else {
            throw ControlError("ffmpeg wrote no file for \(url.absolute): try again, or choose one --rendition")
        }
        _ = try export.run(from: made, length: Int64(info.st_size)) { _ in !interruption.isRequested }
        return Int64(info.st_size)
    }
}
