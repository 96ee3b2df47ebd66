import ControlAPI
import DiskCache
import Reelcache
import Upstream

extension RunningProxy {
    private static let archivePath = "/api/v1/archive"

    package func exportArchive(
        isWanted: @escaping () -> Bool, _ receive: @escaping (UnsafeRawBufferPointer) throws -> Void
    ) throws {
        // With the token, nothing is left out.
        var request = try request("GET", Self.archivePath, needsToken: true)
        request.isWanted = isWanted
        var (refused, result): ([UInt8], Result<Void, any Error>) = ([], .success(()))
        let cut = "the proxy ended before the archive was complete: try again"
        var hasBegun = false
        let head = try perform(request, failed: { _ in hasBegun ? cut : nil }) { head, bytes, _ in
            guard head.status == 200 else {
                refused.append(contentsOf: bytes)
                return refused.count < 1 << 20 ? .more : .enough
            }
            hasBegun = true
            result = Result { try receive(bytes) }
            if case .success = result { return .more }
            return .enough
        }
        guard head.status == 200 else { throw refusal(head.status, refused, Self.archivePath) }
        try result.get()
    }

    package func importArchive(
        _ descriptor: Int32, keepsPins: Bool, keepsParts: Bool, isWanted: @escaping (Int64) -> Bool
    )
        -> ArchiveOutcome
    {
        do {
            var request = try request("PUT", Self.archivePath, [("pins", "\(keepsPins)"), ("parts", "\(keepsParts)")])
            request.content = .stream(descriptor: descriptor)
            request.progress = isWanted
            return ArchiveOutcome(report: try ask(request, for: ArchiveReport.self), error: nil)
        } catch {
            let error = error as? CacheAccessError ?? CacheAccessError("\(error)")
            return ArchiveOutcome(report: error.archive ?? ArchiveReport(), error: error)
        }
    }

    package func wanted(_ lines: [UInt8], beside claimed: Int64) throws -> WantedGenerations {
        var request = try request("POST", Self.archivePath + "/wanted", [("beside", "\(claimed)")])
        request.fields.append("Content-Type", "application/json")
        request.content = .bytes(lines)
        return try ask(request, for: WantedGenerations.self)
    }
}
