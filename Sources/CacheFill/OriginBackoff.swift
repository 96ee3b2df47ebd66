import CachePolicy
import EventIO
import HTTPModel
import Synchronization
import Upstream

/// Which hosts have asked for a back-off, and which cannot be reached. Shared by all loops.
///
/// - A host that answers 429 or 503 with `Retry-After` gets no requests for that time (RFC 9110 §10.2.3). The whole
///   host is spared for at most a minute, the *place* that answered for up to an hour: on a host with many tenants, one
///   must not speak for the others. A place is everything below the first segment of a path.
/// - A host to which no connection could be made counts as *down* for a short time. Requests still try it, but those
///   that can be answered from the cache do not wait.
package final class OriginBackoff: Sendable {
    private let hosts = Mutex<[Host: HostStanding]>([:])
    /// Whether there are any: mostly there are none.
    private let isQuiet = Atomic(true)
    /// When each parent was last found to lead back here. They come from the configuration, so they are few.
    private let circles = Mutex<[ParentProxy: UInt64]>([:])
    private let nanoseconds: @Sendable () -> UInt64

    /// The number of hosts to remember. Beyond it, the one whose back-off ends first is forgotten first.
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

    /// - Parameter nanoseconds: a monotonic clock.
    package init(nanoseconds: @escaping @Sendable () -> UInt64 = MonotonicClock.nanoseconds) {
        self.nanoseconds = nanoseconds
    }

    /// The remaining back-off of a URL's host in seconds; 0 if there is none.
    package func wait(before url: String) -> Double {
        standing(of: url)?.wait(for: Self.place(of: url), at: nanoseconds()) ?? 0
    }

    /// The same for the host to which a URL redirects.
    func wait(behind url: String, leadingTo location: String) -> Double {
        guard !isQuiet.load(ordering: .relaxed), let target = try? OriginURL(url: url).resolving(location) else {
            return 0
        }
        return wait(before: target.absolute)
    }

    /// Whether connections to the URL's host have failed recently, and no parent can be requested instead.
    package func isDown(_ url: String, beside parents: [ParentProxy]) -> Bool {
        standing(of: url)?.isDown(at: nanoseconds()) == true && parents.allSatisfy(isResting)
    }

    /// The path's first segment with both slashes; files at the top level share the place `/`.
    private static func place(of url: String) -> String {
        guard
            let path = try? OriginURL(url: url).pathAndQuery.utf8.prefix(while: { $0 != UInt8(ascii: "?") })
                .dropFirst(),
            let end = path.firstIndex(of: UInt8(ascii: "/"))
        else { return "/" }
        return "/" + String(Substring(path[...end]))
    }

    private func standing(of url: String) -> HostStanding? {
        guard !isQuiet.load(ordering: .relaxed), let host = Host(url) else { return nil }
        return hosts.withLock { $0[host] }
    }

    /// Takes an answer to a request for a URL. After a redirect, `Retry-After` counts for the host that answered last.
    package func note(_ head: UpstreamHead, requesting url: String) {
        let retryAfter = Self.retryAfter(of: head)
        guard retryAfter != nil || !isQuiet.load(ordering: .relaxed), let requested = Host(url),
            let last = Host(head.finalURL)
        else { return }
        let now = nanoseconds()
        change(at: now) { hosts in
            for (host, url) in [(requested, url), (last, head.finalURL)] {
                var standing = hosts[host] ?? HostStanding()
                standing.answered(
                    host == last ? retryAfter : nil, from: Self.place(of: url), isGood: head.status < 400, at: now)
                hosts[host] = standing.isRemarkable(at: now) ? standing : nil
            }
        }
    }

    /// Takes a failed request for a URL. A failure at another host, after a redirect, does not count against this one.
    package func note(_ error: UpstreamError, requesting url: String) {
        guard let unreachable = error.unreachableHost, let requested = try? OriginURL(url: url),
            requested.isOn(unreachable),
            let host = Host(url)
        else { return }
        let now = nanoseconds()
        change(at: now) { $0[host, default: HostStanding()].failed(at: now) }
    }

    /// How many seconds of back-off an answer asks for.
    private static func retryAfter(of head: UpstreamHead) -> Int64? {
        guard head.status == 429 || head.status == 503 else { return nil }
        // A date in `Retry-After` goes by the origin's clock.
        let now = head.fields["Date"].flatMap { HTTPDate.parse($0) } ?? head.receivedAt
        return RetryAfter.seconds(head.fields["Retry-After"], now: now)
    }

    // MARK: Parents

    /// Whether a parent failed so recently that it is not asked.
    func isResting(_ parent: ParentProxy) -> Bool {
        guard let standing = standing(of: parent.url) else { return false }
        let now = nanoseconds()
        return standing.isDown(at: now) || standing.wait(for: "/", at: now) > 0
    }

    /// A parent has answered, whatever its origin said.
    func answered(_ parent: ParentProxy) {
        guard !isQuiet.load(ordering: .relaxed), let host = Host(parent.url) else { return }
        change(at: nanoseconds()) { $0[host] = nil }
    }

    /// A parent has answered that a request has passed it before. It is asked all the same: anybody may name it in the
    /// `Via` of a request.
    /// - Returns: whether it is worth a message, as the last one was long ago.
    func isNewCircle(_ parent: ParentProxy) -> Bool {
        let now = nanoseconds()
        return circles.withLock { circles in
            if let known = circles[parent], now -| known < UInt64(HostStanding.memory * 1e9) { return false }
            circles[parent] = now
            return true
        }
    }

    /// A parent could not be reached, or fell silent.
    func failed(_ parent: ParentProxy) {
        guard let host = Host(parent.url) else { return }
        let now = nanoseconds()
        change(at: now) { $0[host, default: HostStanding()].failed(at: now) }
    }

    /// A parent is busy, and is not asked for some seconds; no longer than one that cannot be reached.
    func rest(_ parent: ParentProxy, seconds: Int64) {
        guard let host = Host(parent.url) else { return }
        let now = nanoseconds(), seconds = min(seconds, Int64(HostStanding.longestDown))
        change(at: now) { $0[host, default: HostStanding()].answered(seconds, from: "/", at: now) }
    }

    private func change(at now: UInt64, _ body: (inout [Host: HostStanding]) -> Void) {
        hosts.withLock { hosts in
            body(&hosts)
            Self.shrink(&hosts, at: now)
            isQuiet.store(hosts.isEmpty, ordering: .relaxed)
        }
    }

    private static func shrink(_ hosts: inout [Host: HostStanding], at now: UInt64) {
        guard hosts.count > capacity else { return }
        hosts = hosts.filter { $0.value.isRemarkable(at: now) }
        guard hosts.count > capacity, let first = hosts.min(by: { $0.value.end < $1.value.end }) else { return }
        hosts[first.key] = nil
    }
}

extension OriginBackoff {
    /// The back-off of one host. Times are nanoseconds of one clock.
    struct HostStanding: Equatable {
        /// The whole host is in back-off until then.
        private var quietUntil: UInt64 = 0
        /// When the back-off of each place ends.
        private var places: [String: UInt64] = [:]
        /// The host counts as down until then.
        private var downUntil: UInt64 = 0
        private var failures = 0

        /// In seconds; a longer back-off is cut to this.
        static let longestRetryAfter: Int64 = 3600
        /// The longest back-off in seconds that one place can impose on the whole host.
        static let longestForAll: Int64 = 60
        /// The number of places to remember. Beyond it, the one whose back-off ends first is forgotten.
        static let mostPlaces = 32
        /// Seconds after the first failure; doubled with each further one.
        static let firstDown = 1.0
        static let longestDown = 30.0
        /// Seconds after which earlier failures no longer count.
        static let memory = 60.0

        func wait(for place: String, at now: UInt64) -> Double {
            let until = max(quietUntil, places[place] ?? 0)
            return until > now ? Double(until - now) / 1e9 : 0
        }

        func isDown(at now: UInt64) -> Bool { downUntil > now }

        /// Whether there is anything to remember.
        func isRemarkable(at now: UInt64) -> Bool { end > now }

        /// When nothing more needs to be remembered.
        var end: UInt64 {
            max(quietUntil, places.values.max() ?? 0, failures > 0 ? downUntil + UInt64(Self.memory * 1e9) : 0)
        }

        /// - Parameters:
        ///   - retryAfter: the requested back-off in seconds.
        ///   - isGood: whether the answer is no error. If so, another place's back-off no longer applies to the whole
        ///     host.
        mutating func answered(_ retryAfter: Int64?, from place: String, isGood: Bool = false, at now: UInt64) {
            (downUntil, failures) = (0, 0)
            if let retryAfter {
                let seconds = min(max(retryAfter, 0), Self.longestRetryAfter)
                quietUntil = max(quietUntil, Self.time(now, after: min(seconds, Self.longestForAll)))
                places[place] = max(places[place] ?? 0, Self.time(now, after: seconds))
                if places.count > Self.mostPlaces, let first = places.min(by: { $0.value < $1.value }) {
                    places[first.key] = nil
                }
            } else if isGood, places[place] ?? 0 <= now {
                quietUntil = 0
            }
        }

        /// - Parameter seconds: at most an hour.
        private static func time(_ now: UInt64, after seconds: Int64) -> UInt64 {
            now +| UInt64(seconds) *| 1_000_000_000
        }

        /// No connection could be made. Requests that fail at the same time count once.
        mutating func failed(at now: UInt64) {
            guard !isDown(at: now) else { return }
            if end <= now { failures = 0 }
            let seconds = min(
                Self.longestDown, Self.firstDown * Double(sign: .plus, exponent: min(failures, 10), significand: 1))
            failures += 1
            downUntil = now + UInt64(seconds * 1e9)
        }
    }
}

extension UpstreamError {
    /// The host to which no connection could be made; nil for other errors.
    package var unreachableHost: String? {
        switch self {
        case .cannotResolve(let host), .cannotConnect(let host, _), .timedOut(let host, .connect),
            .proxyFailed(_, let host, _):
            host
        default: nil
        }
    }
}

extension OriginURL {
    /// Whether this is the URL's host, written with or without brackets.
    package func isOn(_ name: String) -> Bool { host == name || host == "[\(name)]" }
}
