import Administration
import CachePolicy
import DiskCache
import Foundation
import HTTPModel
import LocalFiles

/// Makes one file of a presentation.
///
/// One rendition whose container the file is to have is joined byte for byte: transport streams one after the other, of
/// fragmented MP4 the initialization section first. Several renditions, and other containers, go through `ffmpeg`,
/// which encodes nothing again, from files joined in this way.
struct PresentationExport {
    private let presentation: PresentationReport
    private let url: OriginURL
    private let name: String?
    private let interruption: Interruption

    /// - Parameter name: of the rendition that is wanted; nil for the best that is complete, with a sound.
    init(_ presentation: PresentationReport, of url: OriginURL, named name: String?, _ interruption: Interruption) {
        (self.presentation, self.url, self.name, self.interruption) = (presentation, url, name, interruption)
    }

    /// Whether a file's name says that the playlist itself is wanted.
    static func isPlaylist(_ output: String) -> Bool { [".m3u8", ".m3u", ".mpd"].contains { output.hasSuffix($0) } }

    /// - Returns: the bytes of the file.
    func run(_ access: any CacheAccess, _ export: FileExport, to output: String) throws -> Int64 {
        let wanted = try renditions()
        if let protected = wanted.first(where: \.isEncrypted) {
            throw CacheAccessError(
                "\(protected.name) of \(url.absolute) is encrypted and cannot be joined: have ffmpeg -i read it through the proxy"
            )
        }
        if wanted.count == 1, Self.fits(wanted[0], output) {
            return try export.write { try join(wanted[0], into: $0, access) }
        }
        return try convert(wanted, access, export, to: output)
    }

    // MARK: Which renditions

    private func renditions() throws -> [RenditionReport] {
        if let name {
            guard let named = presentation.renditions.first(where: { $0.name == name }) else {
                let names = presentation.renditions.map(\.name).joined(separator: "; ")
                throw CacheAccessError("\(url.absolute) has no rendition '\(name)', but \(names)")
            }
            guard named.isComplete else { throw incomplete(named) }
            return [named]
        }
        guard let video = Self.best("video", presentation.renditions.filter(\.isComplete)) else {
            let best = Self.best("video", presentation.renditions) ?? presentation.renditions.first
            throw best.map(incomplete) ?? CacheAccessError("\(url.absolute) has no renditions")
        }
        let sounds = presentation.renditions.filter { $0.kind == "audio" }
        guard let sound = sounds.first else { return [video] }
        guard let complete = Self.best("audio", sounds.filter(\.isComplete)) else { throw incomplete(sound) }
        return [video, complete]
    }

    private static func best(_ kind: String, _ renditions: [RenditionReport]) -> RenditionReport? {
        renditions.filter { $0.kind == kind }.reduce(nil) { best, next in
            best.map { $0.bandwidth ?? 0 >= next.bandwidth ?? 0 } ?? false ? best : next
        }
    }

    private func incomplete(_ rendition: RenditionReport) -> CacheAccessError {
        let lacking = rendition.segments -| rendition.cachedSegments
        let what =
            rendition.segments == 0
            ? "its playlist is not cached"
            : lacking > 0
                ? "\(lacking.grouped) of \(rendition.segments.of("segment")) are missing"
                : "a key or an initialization section is missing"
        return CacheAccessError(
            "\(rendition.name) of \(url.absolute) is not complete, as \(what): get it with reelcache prefetch")
    }

    private static func fits(_ rendition: RenditionReport, _ output: String) -> Bool {
        switch (rendition.initializations ?? []).count {
        case 0: output.hasSuffix(".ts") && container(rendition) == "ts"
        case 1: [".mp4", ".m4s", ".m4v", ".m4a"].contains { output.hasSuffix($0) }
        default: false
        }
    }

    /// What its segments are, as far as their names say so: the suffix of a file that has them.
    private static func container(_ rendition: RenditionReport) -> String {
        guard (rendition.initializations ?? []).isEmpty else { return "mp4" }
        let path = rendition.segmentList?.first?.url.prefix { $0 != "?" } ?? ""
        return ["mp4", "m4s", "aac", "vtt", "webm"].first { path.hasSuffix("." + $0) } ?? "ts"
    }

    // MARK: One file

    private func join(_ rendition: RenditionReport, into file: UnfinishedFile, _ access: any CacheAccess) throws
        -> Int64
    {
        let segments = (rendition.segmentList ?? []).map { PlaceReport(url: $0.url, range: $0.range) }
        let places = (rendition.initializations ?? []) + segments
        let progress = ProgressLine()
        defer { progress.clear() }
        var end: Int64 = 0
        for place in places {
            guard !interruption.isWished else { throw CacheAccessError.interrupted }
            end = try append(place, to: file, at: end, access)
            progress.show("export", end, of: rendition.cached)
        }
        return end
    }

    private func append(_ place: PlaceReport, to file: UnfinishedFile, at start: Int64, _ access: any CacheAccess)
        throws
        -> Int64
    {
        var end = start
        try access.withFile(try OriginURL(url: place.url), isWanted: { !interruption.isWished }) { lent in
            let source = try UnfinishedFile.open(lent.path)
            defer { close(source) }
            let range = place.range?.range ?? 0..<lent.length
            try file.append(range.clamped(to: 0..<max(0, lent.length)), of: source, at: &end)
            guard lent.isHeld() else { throw FileError("the proxy ended meanwhile: try again") }
        }
        return end
    }

    // MARK: Through ffmpeg

    private func convert(
        _ renditions: [RenditionReport], _ access: any CacheAccess, _ export: FileExport, to output: String
    )
        throws -> Int64
    {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("reelcache-\(UUID().uuidString)")
        try FileManager.default.createDirectory(
            at: directory, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        defer { try? FileManager.default.removeItem(at: directory) }
        var inputs: [String] = []
        for (number, rendition) in renditions.enumerated() {
            let path = directory.appendingPathComponent("\(number).\(Self.container(rendition))").path
            try FileExport(to: path, replaces: false).write { _ = try join(rendition, into: $0, access) }
            inputs.append(path)
        }
        let suffix = (output as NSString).pathExtension
        let made = directory.appendingPathComponent("out" + (suffix.isEmpty ? "" : "." + suffix)).path
        try Self.ffmpeg(inputs, made)
        var info = stat()
        guard stat(made, &info) == 0 else { throw CacheAccessError("ffmpeg made no file of \(url.absolute)") }
        _ = try export.run(from: made, length: Int64(info.st_size)) { _ in !interruption.isWished }
        return Int64(info.st_size)
    }

    private static func ffmpeg(_ inputs: [String], _ output: String) throws {
        let process = Process(), errors = Pipe()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments =
            ["ffmpeg", "-nostdin", "-v", "error"] + inputs.flatMap { ["-i", $0] }
            + inputs.indices.flatMap { ["-map", "\($0)"] } + ["-c", "copy", output]
        (process.standardError, process.standardOutput) = (errors, FileHandle.nullDevice)
        try process.run()
        let said = errors.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        // env(1): the command was not found.
        if process.terminationStatus == 127 {
            throw CacheAccessError("this needs ffmpeg, which is not installed: install it, or choose one --rendition")
        }
        guard process.terminationStatus == 0 else {
            let line =
                String(decoding: said, as: UTF8.self).split(whereSeparator: \.isNewline).last ?? "no reason given"
            throw CacheAccessError("ffmpeg cannot put it into one file: \(line.prefix(300))")
        }
    }
}
