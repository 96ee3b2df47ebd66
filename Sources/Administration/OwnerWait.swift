import DiskCache
import Foundation
import Reelcache
import Upstream

/// Waits for a cache that somebody has who will soon be done with it: another command, a proxy that has not announced
/// itself yet, or one that takes no more connections.
struct OwnerWait {
    let cacheDirectory: String
    /// Ten seconds, in steps that nobody notices.
    private var tries = 100
    private static let stepMicroseconds: UInt32 = 100_000

    init(cacheDirectory: String) { self.cacheDirectory = cacheDirectory }

    enum Access<Own> {
        case running(RunningProxy)
        case own(Own)
    }

    /// - Parameters:
    ///   - isWanted: asked before each step; false ends it with an error.
    ///   - open: takes the cache for this process.
    /// - Throws: what `open` throws where nobody has the cache; `CacheAccessError` where somebody keeps it.
    mutating func access<Own>(_ isWanted: () -> Bool, orElse open: () throws -> Own) throws -> Access<Own> {
        while true {
            let proxy = RunningProxy(cacheDirectory: cacheDirectory)
            if let proxy, tries == 0 || proxy.isReachable { return .running(proxy) }
            if proxy == nil {
                do { return .own(try open()) } catch {
                    // The lock may have been taken since it was looked at, and is not always held by somebody who has
                    // said who he is.
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
            "\(owner) has the cache \(cacheDirectory) open and runs no proxy that could be asked: wait until it has ended"
        )
    }
}

private extension RunningProxy {
    /// Whether it takes connections. One that does, and then does not answer, has something else the matter with it.
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
