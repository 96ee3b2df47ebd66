import Administration
import ArgumentParser
import DiskCache
import Foundation
import HTTPModel
import Reelcache

/// `import` of an archive, from a file or from standard input.
struct ArchiveInput {
    /// `-` for standard input.
    let file: String
    let json: Bool
    let secret: SecretOptions

    func run(_ configuration: ProxyConfiguration) throws {
        let interruption = Interruption()
        let descriptor = file == "-" ? STDIN_FILENO : open(file, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw CacheAccessError("cannot open \(file): \(String(errno: errno))") }
        defer { if file != "-" { close(descriptor) } }
        let total = try check(descriptor)
        let progress = ProgressLine()
        let outcome = try configuration.withCache(isFilled: true, isWanted: { !interruption.isWished }) { access in
            access.importArchive(descriptor, keepsPins: true, keepsParts: false) { done in
                progress.show("import", done, of: total)
                return !interruption.isWished
            }
        }
        progress.clear()
        try ArchiveText(outcome.report, outcome.error, file: file).print(json, secret, configuration)
    }

    /// Recognizes what is no archive before a cache is made for it.
    /// - Returns: its length, if it is a regular file.
    private func check(_ descriptor: Int32) throws -> Int64? {
        var info = stat()
        guard fstat(descriptor, &info) == 0, info.st_mode & S_IFMT == S_IFREG else { return nil }
        var start = [UInt8](repeating: 0, count: ArchiveFormat.name.count)
        let count = pread(descriptor, &start, start.count, lseek(descriptor, 0, SEEK_CUR))
        guard count == start.count, start == ArchiveFormat.name else {
            throw CacheAccessError(
                "\(file == "-" ? "standard input" : file) is not an archive of a cache: name the URL of a media file with --as URL"
            )
        }
        return Int64(info.st_size)
    }
}

/// What an import of an archive has done, in words.
struct ArchiveText {
    private let report: ArchiveReport
    private let error: CacheAccessError?
    private let file: String

    init(_ report: ArchiveReport, _ error: CacheAccessError?, file: String) {
        (self.report, self.error, self.file) = (report, error, file)
    }

    private struct Outcome: Encodable {
        let report: ArchiveReport
        let error: String?
    }

    /// Prints it, and exits with 3 if it failed after it had imported something, with 1 if it had not.
    func print(_ json: Bool, _ secret: SecretOptions, _ configuration: ProxyConfiguration) throws {
        guard error == nil || report.imported > 0 else { throw error! }
        let failure = error?.text(in: .flags)
        if json {
            Swift.print(try secret.json(Outcome(report: report, error: failure), configuration))
        } else {
            Swift.print(Self.line("imported", report))
        }
        guard let failure else { return }
        let name = file == "-" ? "standard input" : file
        Terminal.writeError("reelcache: \(try secret.shown("\(name): \(failure)", configuration))")
        throw ExitCode(3)
    }

    /// `imported 12 resources, 3.40 GB; 5 were there already, 2 did not fit`
    static func line(_ verb: String, _ report: ArchiveReport) -> String {
        var others: [String] = []
        for (count, what) in [
            (report.present, "there already"), (report.older, "older than what is cached"),
            (report.kept, "kept as they are, because they are pinned or being fetched"),
            (report.noRoom, "left out for lack of room"),
        ] where count > 0 { others.append("\(count.grouped) \(what)") }
        return "\(verb) \(report.imported.of("resource")), \(report.bytes.size)"
            + (others.isEmpty ? "" : "; " + others.joined(separator: ", "))
    }
}
