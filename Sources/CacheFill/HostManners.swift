import CachePolicy
import EventIO
import HTTPModel
import Synchronization
import Upstream

/// How hosts want to be treated, and whether they can be reached: shared by all loops.
///
/// - A host that answers 429 or 503 with `Retry-After` is left alone for so long (RFC 9110 §10.2.3).
/// - One to which no connection could be made counts as *down* for a short time: requests still try, but who has something cached need not
///   wait for them.
package final class HostManners: Sendable {
    private let hosts = Mutex<[Host: HostStanding]>([:])
    private let nanoseconds: @Sendable () -> UInt64

    /// Hosts that are remembered. Of more, those are forgotten first whose standing ends first.
    private static let capacity = 512

    /// Scheme, host and port.
    private struct Host: Hashable {
        let scheme: OriginURL.Scheme
        let authority: String

        init?(_ url: String) {
            guard let url = try? OriginURL(url: url) else { return nil }
            (scheme, authority) = (url.scheme, url.authority)
        }
    }

    /// - Parameter nanoseconds: a clock that never goes back.
    package init(nanoseconds: @escaping @Sendable () -> UInt64 = MonotonicClock.nanoseconds) {
        self.nanoseconds = nanoseconds
    }

    /// Seconds for which the host of a URL still wants to be left alone; 0 where it may be asked.
    package func wait(before url: String) -> Double {
        standing(of: url)?.wait(at: nanoseconds()) ?? 0
    }

    /// Whether no connection to the host of a URL could be made a short time ago.
    package func isDown(_ url: String) -> Bool {
        standing(of: url)?.isDown(at: nanoseconds()) ?? false
    }

    private func standing(of url: String) -> HostStanding? {
        // Mostly there is nothing to look for, and no URL to take apart.
        guard hosts.withLock({ !$0.isEmpty }), let host = Host(url) else { return nil }
        return hosts.withLock { $0[host] }
    }

    /// A request for a URL was answered. A wish is that of the host which had the last word, where the one asked has sent us on.
    package func note(_ head: UpstreamHead, asking url: String) {
        let wish = Self.wish(of: head)
        guard wish != nil || hosts.withLock({ !$0.isEmpty }), let asked = Host(url), let last = Host(head.finalURL) else { return }
        let now = nanoseconds()
        hosts.withLock { hosts in
            for host in [asked, last] {
                var standing = hosts[host] ?? HostStanding()
                standing.answered(host == last ? wish : nil, at: now)
                hosts[host] = standing.isRemarkable(at: now) ? standing : nil
            }
            Self.shrink(&hosts, at: now)
        }
    }

    /// A request for a URL has failed. What went wrong at another host, where the one asked has sent us, is not its fault.
    package func note(_ error: UpstreamError, asking url: String) {
        guard let unreachable = error.unreachableHost, let asked = try? OriginURL(url: url), asked.isOn(unreachable), let host = Host(url) else { return }
        let now = nanoseconds()
        hosts.withLock { hosts in
            hosts[host, default: HostStanding()].failed(at: now)
            Self.shrink(&hosts, at: now)
        }
    }

    /// For how many seconds an answer asks us to go away.
    private static func wish(of head: UpstreamHead) -> Int64? {
        guard head.status == 429 || head.status == 503 else { return nil }
        // A date is meant by the clock of who wrote it.
        let now = head.fields["Date"].flatMap { HTTPDate.parse($0) } ?? head.receivedAt
        return RetryAfter.seconds(head.fields["Retry-After"], now: now)
    }

    private static func shrink(_ hosts: inout [Host: HostStanding], at now: UInt64) {
        guard hosts.count > capacity else { return }
        hosts = hosts.filter { $0.value.isRemarkable(at: now) }
        guard hosts.count > capacity, let first = hosts.min(by: { $0.value.end < $1.value.end }) else { return }
        hosts[first.key] = nil
    }
}

/// What is known of one host. Times are nanoseconds of one clock.
struct HostStanding: Equatable {
    /// Until then it wants to be left alone.
    private var quietUntil: UInt64 = 0
    /// Until then it counts as down.
    private var downUntil: UInt64 = 0
    private var failures = 0

    /// Seconds; a host that wants more is not believed.
    static let longestWish: Int64 = 3600
    /// Seconds after the first failure; twice as long after each further one.
    static let firstDown = 1.0
    static let longestDown = 30.0
    /// Seconds after which former failures no longer count.
    static let memory = 60.0

    func wait(at now: UInt64) -> Double { quietUntil > now ? Double(quietUntil - now) / 1e9 : 0 }

    func isDown(at now: UInt64) -> Bool { downUntil > now }

    /// Whether it is to be remembered.
    func isRemarkable(at now: UInt64) -> Bool { end > now }

    /// When it is as good as any other host again.
    var end: UInt64 { max(quietUntil, failures > 0 ? downUntil + UInt64(Self.memory * 1e9) : 0) }

    /// - Parameter wish: seconds for which it wants to be left alone.
    mutating func answered(_ wish: Int64?, at now: UInt64) {
        (downUntil, failures) = (0, 0)
        if let wish { quietUntil = max(quietUntil, now + UInt64(min(max(wish, 0), Self.longestWish)) * 1_000_000_000) }
    }

    /// No connection could be made. Requests that fail together count once.
    mutating func failed(at now: UInt64) {
        guard !isDown(at: now) else { return }
        if end <= now { failures = 0 }
        let seconds = min(Self.longestDown, Self.firstDown * Double(sign: .plus, exponent: min(failures, 10), significand: 1))
        failures += 1
        downUntil = now + UInt64(seconds * 1e9)
    }
}

extension UpstreamError {
    /// The host to which no connection could be made; nil where that was not the fault.
    fileprivate var unreachableHost: String? {
        switch self {
        case .cannotResolve(let host), .cannotConnect(let host, _), .timedOut(let host, .connect): host
        default: nil
        }
    }
}

extension OriginURL {
    /// Whether its host is this one, written with or without brackets.
    fileprivate func isOn(_ name: String) -> Bool { host == name || host == "[\(name)]" }
}
