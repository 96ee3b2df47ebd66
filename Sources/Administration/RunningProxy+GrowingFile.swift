import CachePolicy
import ControlAPI
import Reelcache
import Upstream

extension RunningProxy {
    /// Lends the file of a resource while it is being fetched. It stays the same file for as long as it is held, and
    /// bytes that have arrived in it stay.
    /// - Parameters:
    ///   - isWanted: called at least four times a second, even if nothing arrives.
    ///   - body: called at once, and then repeatedly with the ranges that have arrived since, until it returns
    ///     false.
    /// - Throws: the errors of `body`; `CacheAccessError` if nothing of it is cached, or it is removed or replaced.
    package func withGrowingFile(
        _ url: OriginURL, isWanted: @escaping () -> Bool, _ body: @escaping (LentFile, [Range<Int64>]) throws -> Bool
    ) throws {
        let path = "/api/v1/resources/file"
        var request = try request("GET", path, [("url", url.absolute), ("growing", "true")])
        // Nothing may arrive for any length of time.
        request.stallTimeout = 0
        request.isWanted = isWanted
        var (lines, refused, held): (JSONLines, [UInt8], HeldFile?) = (JSONLines(), [], nil)
        var result: Result<Bool, any Error> = .success(true)
        let directory = cacheDirectory
        let gone =
            "the cached \(url.absolute) was removed or replaced meanwhile, or the proxy has ended: try again"
        let head = try perform(request, failed: { _ in gone }) { head, bytes, isOpen in
            guard head.status == 200 else {
                refused.append(contentsOf: bytes)
                return .more
            }
            result = Result {
                for line in lines.append(bytes) {
                    let file = try held ?? ControlJSON.decode(HeldFile.self, from: line)
                    let news =
                        held == nil ? [] : try ControlJSON.decode(GrownFile.self, from: line).ranges(below: file.length)
                    held = file
                    guard try body(LentFile(file, in: directory, isHeld: isOpen), news) else { return false }
                }
                return true
            }
            if case .success(true) = result { return .more }
            return .enough
        }
        guard head.status == 200 else { throw refusal(head.status, refused, path) }
        if try result.get() { throw CacheAccessError(gone) }
    }
}
