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
    /// - Throws: the errors of `body`; `ControlError` if nothing of it is cached, or it is removed or replaced.
    package func withGrowingFile(
        _ url: OriginURL, isWanted: @escaping () -> Bool, _ body: @escaping (LentFile, [Range<Int64>]) throws -> Bool
    ) throws {
        var request = try client.request(\.file, [.url: url.absolute, .growing: "true"])
        // Nothing may arrive for any length of time.
        request.fetch.stallTimeout = 0
        request.fetch.isWanted = isWanted
        var (lines, held): (JSONLines, HeldFile?) = (JSONLines(), nil)
        let gone =
            "the cached \(url.absolute) was removed or replaced meanwhile, or the proxy has ended: try again"
        let isOver = try client.receive(request, failed: { _ in gone }) { bytes, isOpen in
            for line in lines.append(bytes) {
                let file = try held ?? client.decode(HeldFile.self, from: line, of: request.path)
                let news =
                    held == nil
                    ? []
                    : try client.decode(HeldFile.Growth.self, from: line, of: request.path).ranges(below: file.length)
                held = file
                guard try body(LentFile(file, in: cacheDirectory, isHeld: isOpen), news) else { return false }
            }
            return true
        }
        if isOver { throw ControlError(gone) }
    }
}
