import Synchronization

/// The bytes of each origin host. Safe to use from any thread.
///
/// Counting takes no lock: who counts keeps the host's `Origin`. Which hosts are listed by name is decided when the
/// numbers are read (`OriginListing`).
package final class OriginCounters: Sendable {
    /// The counters of one host.
    package final class Origin: Sendable {
        /// Bytes of bodies received from the host.
        package let received = Counter()
        /// Bytes of bodies sent to players: those that were stored before they were requested, and those that arrived
        /// meanwhile.
        package let sentFromCache = Counter(), sentFromOrigin = Counter()

        fileprivate init() {}

        fileprivate var bytes: OriginBytes {
            OriginBytes(
                received: received.value, sentFromCache: sentFromCache.value, sentFromOrigin: sentFromOrigin.value)
        }
    }

    /// The most hosts that are counted one by one; the bytes of further hosts are summed.
    package static let capacity = 2048
    /// The most bytes of a name; no host name is longer (RFC 1035 §2.3.4).
    private static let longestName = 255

    private struct State {
        var origins: [String: Origin] = [:]
        var listing = OriginListing()
    }

    private let state = Mutex(State())
    /// All hosts beyond the capacity.
    private let rest = Origin()

    package init() {}

    /// The counters of a host. Takes a lock: keep the result.
    package func origin(_ host: String) -> Origin {
        let name =
            host.utf8.count <= Self.longestName
            ? host : String(decoding: host.utf8.prefix(Self.longestName), as: UTF8.self)
        guard name != OriginListing.rest else { return rest }
        return state.withLock { state in
            if let origin = state.origins[name] { return origin }
            guard state.origins.count < Self.capacity else { return rest }
            let origin = Origin()
            state.origins[name] = origin
            return origin
        }
    }

    /// The bytes of the hosts with most of them, by name, and of all others under `other`.
    package var listed: [(host: String, bytes: OriginBytes)] {
        state.withLock { state in
            state.listing.update(state.origins.mapValues(\.bytes), rest: rest.bytes)
            return state.listing.rows
        }
    }
}

/// Bytes that have to do with one origin host.
package struct OriginBytes: Sendable, Equatable {
    package var received: UInt64 = 0
    package var sentFromCache: UInt64 = 0
    package var sentFromOrigin: UInt64 = 0

    var total: UInt64 { received &+ sentFromCache &+ sentFromOrigin }

    static func + (a: Self, b: Self) -> Self {
        Self(
            received: a.received &+ b.received, sentFromCache: a.sentFromCache &+ b.sentFromCache,
            sentFromOrigin: a.sentFromOrigin &+ b.sentFromOrigin)
    }

    static func - (a: Self, b: Self) -> Self {
        Self(
            received: a.received &- b.received, sentFromCache: a.sentFromCache &- b.sentFromCache,
            sentFromOrigin: a.sentFromOrigin &- b.sentFromOrigin)
    }
}

/// Which hosts have a row of their own: the 20 with most bytes. All others share the row `other`.
///
/// The rows are read as counters, which must not go down while they exist, and whose sum must be that of all bytes. So
/// each byte is added to one row, once: to that of its host if that is listed, otherwise to `other`. A host that loses
/// its place leaves its bytes to `other`, and what a host had before it was listed stays there. Only bytes that were
/// counted since the last update are new to a host that is listed for the first time.
struct OriginListing: Sendable {
    /// The most hosts that are listed.
    static let capacity = 20
    /// The name of the row for all other hosts. A host of that name is counted there too.
    static let rest = "other"

    private var listed: [String: OriginBytes] = [:]
    private var other = OriginBytes()
    /// The bytes of each host at the last update.
    private var known: [String: OriginBytes] = [:]
    private var knownRest = OriginBytes()

    /// The rows, the one with most bytes first; `other` is the last.
    var rows: [(host: String, bytes: OriginBytes)] {
        listed.sorted { ($1.value.total, $0.key) < ($0.value.total, $1.key) }.map { ($0.key, $0.value) }
            + [(Self.rest, other)]
    }

    /// - Parameters:
    ///   - totals: the bytes of each host since the start: never fewer hosts or bytes than at the last update.
    ///   - rest: the bytes of hosts that are not among them.
    mutating func update(_ totals: [String: OriginBytes], rest: OriginBytes) {
        let chosen = choose(from: totals)
        for (host, bytes) in listed where !chosen.contains(host) {
            other = other + bytes
            listed[host] = nil
        }
        for (host, total) in totals {
            let news = total - (known[host] ?? OriginBytes())
            if chosen.contains(host) {
                listed[host] = (listed[host] ?? OriginBytes()) + news
            } else {
                other = other + news
            }
        }
        other = other + (rest - knownRest)
        (known, knownRest) = (totals, rest)
    }

    /// The hosts with most bytes; of several with as many, those that are listed already.
    private func choose(from totals: [String: OriginBytes]) -> Set<String> {
        let ranked = totals.lazy.filter { $0.value.total > 0 }.map { host, bytes in
            (total: bytes.total, isListed: self.listed[host] == nil ? 0 : 1, host: host)
        }
        let sorted = ranked.sorted { ($1.total, $1.isListed, $0.host) < ($0.total, $0.isListed, $1.host) }
        return Set(sorted.prefix(Self.capacity).map(\.host))
    }
}
