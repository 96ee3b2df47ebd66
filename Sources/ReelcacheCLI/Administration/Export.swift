import Administration
import ArgumentParser
import CachePolicy
import ControlAPI
import DiskCache
import Downloads
import Foundation
import Reelcache

struct Export: PrintingCommand {
    static let configuration = CommandConfiguration(
        abstract: "Copy a complete resource to a file.",
        discussion: """
            The file appears under its name when it is complete. If the file system can share blocks (reflink), the file \
            shares them with the cache and takes no space of its own.

            An HLS or DASH stream becomes one film: segments of a single rendition are joined byte for byte if the file's \
            extension fits them; anything else is assembled by ffmpeg, without re-encoding. A FILE that ends in \
            .m3u8 or .mpd gets the playlist itself.

              reelcache export https://example.org/film.mp4 -o film.mp4
              reelcache export https://example.org/film.m3u8 -o film.mkv --fetch
            """
    )

    @Argument(help: "The media URL, as its origin has it or as players open it.", completion: .known(.urls))
    var url: String
    @Option(
        name: [.customShort("o"), .customLong("output")],
        help: ArgumentHelp("Write to this file.", valueName: "file"), completion: .file())
    var output: String
    @Flag(help: "Replace the file if it exists.")
    var force = false
    @Option(
        help: ArgumentHelp(
            "Copy this rendition of a stream, by its name in reelcache show. (default: the best one that is complete)",
            valueName: "name"))
    var rendition: String?
    @Flag(
        help: """
            Fetch what is missing first, through the running proxy if there is one: of a stream without a complete \
            rendition, the best picture and the default sound.
            """)
    var fetch = false
    @Option(
        help: ArgumentHelp(
            "With --fetch and without a running proxy, allow this private origin. May be repeated.",
            valueName: "host|cidr"))
    var allow: [String] = []
    @OptionGroup var printing: PrintingOptions

    private struct Exported: Encodable {
        let url: String
        let file: String
        let bytes: Int64
        let method: String

        /// The method, in words.
        var manner: String {
            switch method {
            case FileExport.Method.reflink.rawValue: "sharing the cache's blocks"
            case PresentationExport.Method.ffmpeg.rawValue: "assembled by ffmpeg, without re-encoding"
            default: "a copy"
            }
        }
    }

    func validate() throws {
        guard !output.isEmpty else { throw ValidationError("name the file to write: -o FILE") }
        guard fetch || allow.isEmpty else {
            throw ValidationError("--allow applies to --fetch: add --fetch, or leave --allow out")
        }
        try printing.cache.sources(allow.isEmpty ? [:] : ["allow": allow]).validateFlags()
    }

    func run() throws {
        let interruption = Interruption()
        // Before anything is fetched, so that a bad path fails early.
        let export = try FileExport(to: output, replaces: force)
        var configuration = try printing.cache.configuration
        configuration.allow += allow
        let exported: Exported
        do {
            exported = try run(export, configuration, interruption)
        } catch let error as ControlError {
            if fetch && error.isNotCached {
                throw ControlError("\(url) was fetched, but is not cached: \(Self.notKept)")
            }
            guard let missing = error.missing else { throw error }
            throw incomplete(missing)
        }
        print(
            printing.json
                ? try printing.secret.json(exported, configuration)
                : "exported \(exported.bytes.size) to \(output) (\(exported.manner))"
        )
    }

    private func run(
        _ export: FileExport, _ configuration: ProxyConfiguration, _ interruption: Interruption
    ) throws -> Exported {
        let attempt = {
            try configuration.withProxy(
                for: fetch ? .fetching : .playing, isWanted: { !interruption.isRequested }
            ) { proxy in
                if fetch { try get(proxy, configuration, interruption) }
                return try copy(proxy, export, interruption, as: configuration)
            }
        }
        do { return try attempt() } catch let error as ControlError
            where error.lacksSegments && fetch && rendition == nil && !configuration.isOffline
        {
            do { try download(configuration, interruption) } catch is ExitCode where !interruption.isRequested {
                throw error
            }
            return try attempt()
        }
    }

    /// Downloads the stream as `prefetch` does, but does not pin it.
    private func download(_ configuration: ProxyConfiguration, _ interruption: Interruption) throws {
        let display = DownloadDisplay(
            isJSON: false, isQuiet: printing.json, mask: try printing.secret.mask(configuration))
        let options = DownloadOptions { ($0.isPinned, $0.isAtOnce) = (false, true) }
        try configuration.withProxy(for: .downloading, isWanted: { !interruption.isRequested }) { proxy in
            proxy.own?.cache.downloader.start()
            try PrefetchSession(proxy, display, nil, interruption, successor: configuration)
                .run([DownloadOrder(url: proxy.url(url), options: options)])
        }
    }

    /// Fetches the resource, unless it is complete.
    private func get(_ proxy: RunningProxy, _ configuration: ProxyConfiguration, _ interruption: Interruption) throws {
        let origin = try proxy.url(url)
        if (try? proxy.resource(origin))?.resource.isComplete == true { return }
        let progress = ProgressLine()
        defer { progress.clear() }
        try proxy.fetch(origin, as: configuration) { done, length in
            progress.show("fetch", done, of: length)
            return !interruption.isRequested
        }
    }

    private func copy(
        _ proxy: RunningProxy, _ export: FileExport, _ interruption: Interruption, as configuration: ProxyConfiguration
    ) throws -> Exported {
        let origin = try proxy.url(url)
        if !PresentationExport.isPlaylist(output),
            let made = try join(origin, proxy, export, interruption, as: configuration)
        {
            return made
        }
        var exported: Exported?
        let progress = ProgressLine()
        defer { progress.clear() }
        let isWanted = { !interruption.isRequested }
        try proxy.withFile(origin, isWanted: isWanted) { lent in
            let make = { try UnfinishedFile(in: FileExport.directory(of: output), for: output) }
            exported = try lent.withDecoded(of: origin, into: make, isWanted: isWanted) { lent in
                let method = try export.run(from: lent.path, length: lent.length, isHeld: lent.isHeld) { done in
                    progress.show("export", done, of: lent.length)
                    return isWanted()
                }
                return Exported(url: origin.absolute, file: output, bytes: lent.length, method: method.rawValue)
            }
        }
        guard let exported else {
            throw ControlError("the cache did not provide the file of \(origin.absolute): try again")
        }
        return exported
    }

    /// - Returns: nil if the resource is not a playlist, or if the playlist itself is incomplete.
    private func join(
        _ origin: OriginURL, _ proxy: RunningProxy, _ export: FileExport, _ interruption: Interruption,
        as configuration: ProxyConfiguration
    ) throws -> Exported? {
        let detail = try proxy.resource(origin, listsSegments: true)
        guard let presentation = detail.resource.presentation else {
            guard detail.missing.isEmpty, Self.isPlaylist(detail.resource, origin) else { return nil }
            throw ControlError(
                "no film can be made from the playlist \(origin.absolute), because it is not cached or cannot be read: name the file .m3u8 or .mpd to copy the playlist itself"
            )
        }
        let joined = PresentationExport(presentation, of: origin, named: rendition, interruption, proxy) {
            try proxy.request(for: $0, as: configuration)
        }
        let (bytes, method) = try joined.run(export, to: output)
        return Exported(url: origin.absolute, file: output, bytes: bytes, method: method.rawValue)
    }

    /// Whether the type, or else the name, is that of a playlist. Playlists that only their content reveals were
    /// recognized when they were read.
    private static func isPlaylist(_ resource: CachedResource, _ url: OriginURL) -> Bool {
        resource.contentType.flatMap { PlaylistKind(mediaType: $0) } != nil
            || PresentationExport.isPlaylist(String(url.pathAndQuery.prefix { $0 != "?" }))
    }

    private func incomplete(_ missing: [ByteSpan]) -> ControlError {
        let what =
            "\(url) lacks \(missing.byteCount.size) in \(missing.count.of("range")): \(missing.text(atMost: 3))"
        var error = ControlError(fetch ? "\(what); \(Self.notKept)" : "\(what); use --fetch to fetch them first")
        error.missing = missing
        return error
    }

    private static let notKept = "its origin forbids storing it, or the cache has no room for it"
}
