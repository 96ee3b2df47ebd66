import Administration
import ArgumentParser
import Foundation
import HTTPModel
import LocalFiles
import Reelcache

/// `export --all`: the cache as an archive, in a file or on standard output.
struct ArchiveOutput {
    /// nil for standard output.
    let file: String?
    let replaces: Bool
    let json: Bool
    let secret: SecretOptions

    private struct Exported: Encodable {
        let file: String
        let bytes: Int64
    }

    func run(_ configuration: ProxyConfiguration) throws {
        let interruption = Interruption()
        guard let file else { return try writeOut(configuration, interruption) }
        let progress = ProgressLine()
        var end: Int64 = 0
        try FileExport(to: file, replaces: replaces).write { output in
            defer { progress.clear() }
            // It contains the URLs of everything, and so their secrets, whatever may be in a file that it replaces.
            try output.setMode(0o600)
            try export(configuration, interruption) { bytes in
                try output.append(bytes, at: &end)
                progress.show("export", end, of: nil)
            }
        }
        let exported = Exported(file: file, bytes: end)
        print(json ? try secret.json(exported, configuration) : "exported the cache to \(file), \(end.size)")
    }

    private func writeOut(_ configuration: ProxyConfiguration, _ interruption: Interruption) throws {
        guard !Terminal.isOne(STDOUT_FILENO) else {
            throw ValidationError("an archive is not for a terminal: name a file with -o FILE, or write to a pipe")
        }
        try export(configuration, interruption) { bytes in
            var done = 0
            while done < bytes.count {
                let count = write(STDOUT_FILENO, bytes.baseAddress! + done, bytes.count - done)
                if count < 0 && errno == EINTR { continue }
                guard count > 0 else {
                    throw CacheAccessError("cannot write to standard output: \(String(errno: errno))")
                }
                done += count
            }
        }
    }

    private func export(
        _ configuration: ProxyConfiguration, _ interruption: Interruption,
        _ receive: @escaping (UnsafeRawBufferPointer) throws -> Void
    ) throws {
        let isWanted = { !interruption.isWished }
        try configuration.withCache(isWanted: isWanted) { try $0.exportArchive(isWanted: isWanted, receive) }
    }
}
