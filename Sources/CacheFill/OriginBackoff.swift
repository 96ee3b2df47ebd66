import CachePolicy
import EventIO
import HTTPModel
import Synchronization
import Upstream

/// How hosts want to be treated, and whether they can be reached: shared by all loops.
///
/// - A host that answers 429 or 503 with `Retry-After` is left alone for so long (RFC 9110 §10.2.3): all of it for a
///   minute at most, the *place* that has answered so for up to an hour. Of a host with many tenants one must not speak
///   for the others; a place is all below the first segment of a path.
/// - One to which no connection could be made counts as *down* for a short time: requests still try, but who has
///   something cached need not wait for them.
package final class OriginBackoff: Sendable {
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
        standing(of: url)?.wait(for: Self.place(of: url), at: nanoseconds()) ?? 0
    }

    /// Whether no connection to the host of a URL could be made a short time ago.
    package func isDown(_ url: String) -> Bool {
        standing(of: url)?.isDown(at: nanoseconds()) ?? false
    }

    /// The first segment of the path with the slashes around it; the files at the top have one place together.
    private static func place(of url: String) -> String {
        guard
            let path = try? OriginURL(url: url).pathAndQuery.utf8.prefix(while: { $0 != UInt8(ascii: "?") })
                .dropFirst(),
            let end = path.firstIndex(of: UInt8(ascii: "/"))
        else { return "/" }
        return "/" + String(Substring(path[...end]))
    }

    private func standing(of url: String) -> HostStanding? {
        // Mostly there is nothing to look for, and no URL to take apart.
        guard hosts.withLock({ !$0.isEmpty }), let host = Host(url) else { return nil }
        return hosts.withLock { $0[host] }
    }

    /// A request for a URL was answered. A wish is that of the host which had the last word, where the one asked has
    /// sent us on.
    package func note(_ head: UpstreamHead, asking url: String) {
        let wish = Self.wish(of: head)
        guard wish != nil || hosts.withLock({ !$0.isEmpty }), let asked = Host(url), let last = Host(head.finalURL)
        else { return }
        let now = nanoseconds()
        hosts.withLock { hosts in
            for (host, url) in [(asked, url), (last, head.finalURL)] {
                var standing = hosts[host] ?? HostStanding()
                standing.answered(
                    host == last ? wish : nil, from: Self.place(of: url), isGood: head.status < 400, at: now)
                hosts[host] = standing.isRemarkable(at: now) ? standing : nil
            }
            Self.shrink(&hosts, at: now)
        }
    }

    /// A request for a URL has failed. What went wrong at another host, where the one asked has sent us, is not its
    /// fault.
    package func note(_ error: UpstreamError, asking url: String) {
        guard let unreachable = error.unreachableHost, let asked = try? OriginURL(url: url), asked.isOn(unreachable),
            let host = Host(url)
        else { return }
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
    /// Until then all of it is left alone.
    private var quietUntil: UInt64 = 0
    /// Until when its places want to be left alone.
    private var places: [String: UInt64] = [:]
    /// Until then it counts as down.
    private var downUntil: UInt64 = 0
    private var failures = 0

    /// Seconds; a host that wants more is not believed.
    static let longestWish: Int64 = 3600
    /// Seconds for which one place can speak for all of it.
    static let longestForAll: Int64 = 60
    /// Of more places, those are forgotten first whose time ends first.
    static let mostPlaces = 32
    /// Seconds after the first failure; twice as long after each further one.
    static let firstDown = 1.0
    static let longestDown = 30.0
    /// Seconds after which former failures no longer count.
    static let memory = 60.0

    func wait(for place: String, at now: UInt64) -> Double {
        let until = max(quietUntil, places[place] ?? 0)
        return until > now ? Double(until - now) / 1e9 : 0
    }

    func isDown(at now: UInt64) -> Bool { downUntil > now }

    /// Whether it is to be remembered.
    func isRemarkable(at now: UInt64) -> Bool { end > now }

    /// When it is as good as any other host again.
    var end: UInt64 {
        max(quietUntil, places.values.max() ?? 0, failures > 0 ? downUntil + UInt64(Self.memory * 1e9) : 0)
    }

    /// - Parameters:
    ///   - wish: seconds for which it wants to be left alone.
    ///   - isGood: whether it is no error: then what another place has asked for is not for all.
    mutating func answered(_ wish: Int64?, from place: String, isGood: Bool = false, at now: UInt64) {
        (downUntil, failures) = (0, 0)
        if let wish {
            let seconds = min(max(wish, 0), Self.longestWish)
            quietUntil = max(quietUntil, Self.time(now, after: min(seconds, Self.longestForAll)))
            places[place] = max(places[place] ?? 0, Self.time(now, after: seconds))
            if places.count > Self.mostPlaces, let first = places.min(by: { $0.value < $1.value }) {
                places[first.key] = nil
            }
        } else if isGood, places[place] ?? 0 <= now {
            quietUntil = 0
        }
    }

    /// - Parameter seconds: an hour at most.
    private static func time(_ now: UInt64, after seconds: Int64) -> UInt64 { now +| UInt64(seconds) *| 1_000_000_000 }

    /// No connection could be made. Requests that fail together count once.
    mutating func failed(at now: UInt64) {
        guard !isDown(at: now) else { return }
        if end <= now { failures = 0 }
        let seconds = min(
            Self.longestDown, Self.firstDown * Double(sign: .plus, exponent: min(failures, 10), significand: 1))
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
