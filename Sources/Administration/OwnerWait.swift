import DiskCache
import Foundation
import Reelcache
import Upstream

/// Waits for a cache whose owner will probably release it soon: another command, a proxy that has not announced
/// itself yet, or one that accepts no more connections.
struct OwnerWait {
    let cacheDirectory: String
    /// Ten seconds, in steps too short to notice.
    private var tries = 100
    private static let stepMicroseconds: UInt32 = 100_000

    init(cacheDirectory: String) { self.cacheDirectory = cacheDirectory }

    enum Access<Own> {
        case running(RunningProxy)
        case own(Own)
    }

    /// - Parameters:
    ///   - isWanted: called before each step; false aborts with an error.
    ///   - open: opens the cache in this process.
    /// - Throws: the errors of `open` if no process owns the cache; `CacheAccessError` if another process keeps it.
    mutating func access<Own>(_ isWanted: () -> Bool, orElse open: () throws -> Own) throws -> Access<Own> {
        while true {
            let proxy = RunningProxy(cacheDirectory: cacheDirectory)
            if let proxy, tries == 0 || proxy.isReachable { return .running(proxy) }
            if proxy == nil {
                do { return .own(try open()) } catch {
                    // The lock may have been taken since the check, and its owner has not always recorded its
                    // process ID.
                    guard CacheOwner.isThere(in: cacheDirectory) else { throw error }
                    if tries == 0 { throw busy }
                }
            }
            guard isWanted() else { throw CacheAccessError.interrupted }
            tries -= 1
            usleep(Self.stepMicroseconds)
        }
    }

    private var busy: CacheAccessError {
        let owner = CacheOwner.current(of: cacheDirectory).map { "process \($0.pid)" } ?? "another process"
        return CacheAccessError(
            "\(owner) has the cache \(cacheDirectory) open but runs no proxy: wait until it has ended"
        )
    }
}

private extension RunningProxy {
    /// Whether it accepts connections. A proxy that does but does not answer has another problem, and waiting would
    /// not help.
    var isReachable: Bool {
        do throws(UpstreamError) { _ = try BlockingFetch.get(url: baseURL + "/healthz", timeout: 2) } catch {
            switch error {
            case .cannotConnect, .broken: return false
            default: break
            }
        }
        return true
    }
}
