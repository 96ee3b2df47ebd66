import CachePolicy
import HTTPModel

/// Turns samples of all loops into reports of plays and transfers, and remembers from one look to the next what a
/// single one does not show: rates, and since when nothing has moved. A value, without clock and lock.
package struct ActivityBook: Sendable {
    /// A moment, on the clock of the samples and on that of people.
    package struct Moment: Sendable {
        /// Monotonic, in nanoseconds.
        package let instant: UInt64
        /// Seconds since 1970.
        package let time: Int64

        package init(instant: UInt64, time: Int64) { (self.instant, self.time) = (instant, time) }

        fileprivate var seconds: Double { Double(instant) / 1e9 }

        fileprivate func age(of instant: UInt64) -> Double { Double(self.instant -| instant) / 1e9 }

        /// An earlier moment, in seconds since 1970.
        fileprivate func time(of instant: UInt64) -> Int64 { time -| Int64(saturating: age(of: instant)) }
    }

    /// Seconds for which a play stays without a request: players reconnect when they seek, and those of a
    /// presentation request a segment every few seconds.
    package static let (idleSeconds, idlePresentationSeconds) = (10.0, 30.0)
    /// Seconds without a byte after which a play no longer counts as active.
    package static let stillSeconds = 2.0
    /// Seconds after which a former look says nothing about the rate.
    package static let memorySeconds = 5.0
    /// The most entries of a report; those that began first.
    package static let (mostPlays, mostTransfers) = (100, 100)

    private static let rateSeconds = 2.0
    private static let mostPositions = 8
    private static let longestTitle = 200

    /// How bytes move, from one look to the next.
    private struct Flow {
        private var rate = TransferRate(timeConstant: ActivityBook.rateSeconds)
        private(set) var bytes: Int64 = 0
        /// When bytes were last seen to move.
        private var movedAt: UInt64

        init(at now: Moment) { movedAt = now.instant }

        mutating func note(_ bytes: Int64, at now: Moment) {
            if bytes != self.bytes { movedAt = now.instant }
            self.bytes = bytes
            rate.sample(bytes, at: now.seconds)
        }

        /// Forgets how fast they moved, because that was too long ago.
        mutating func begin(at now: Moment) {
            rate = TransferRate(timeConstant: ActivityBook.rateSeconds)
            movedAt = now.instant
        }

        func isStill(at now: Moment) -> Bool { now.age(of: movedAt) >= stillSeconds }

        /// nil while nothing moves.
        func bytesPerSecond(at now: Moment) -> Int64? { isStill(at: now) ? nil : rate.bytesPerSecond }
    }

    private struct Play {
        let id: Int64
        let since: Int64
        var flow: Flow
    }

    private struct Transfer {
        let since: Int64
        var flow: Flow
    }

    private var plays: [PlaySample.Key: Play] = [:]
    private var transfers: [String: Transfer] = [:]
    private var lastID: Int64 = 0
    private var lastLook: UInt64?

    package init() {}

    /// Takes the samples of all loops.
    /// - Parameter mask: hides secrets in titles that are made from URLs. They have none even where URLs do: it would
    ///   not be found in the part of a URL.
    /// - Returns: the plays and transfers, those that began first at the beginning, and how many were left out.
    package mutating func look(_ samples: ActivitySamples, at now: Moment, mask: URLMask = .standard) -> (
        plays: [PlayReport], transfers: [TransferReport], hidden: (plays: Int, transfers: Int)
    ) {
        forgetRates(at: now)
        lastLook = now.instant
        let joined = Self.joined(samples.plays).filter { Self.isShown($0, at: now) }
            .sorted { ($0.began, $0.key.whole.text) < ($1.began, $1.key.whole.text) }
        let fetches = samples.fetches.sorted { ($0.began, $0.id) < ($1.began, $1.id) }
        let known = (Set(joined.map(\.key)), Set(fetches.map(\.id)))
        plays = plays.filter { known.0.contains($0.key) }
        transfers = transfers.filter { known.1.contains($0.key) }
        return (
            joined.prefix(Self.mostPlays).map { report($0, at: now, mask) },
            fetches.prefix(Self.mostTransfers).map { report($0, at: now) },
            (
                samples.hiddenPlays +| max(0, joined.count - Self.mostPlays),
                samples.hiddenFetches +| max(0, fetches.count - Self.mostTransfers)
            )
        )
    }

    private mutating func forgetRates(at now: Moment) {
        guard let lastLook, now.age(of: lastLook) > Self.memorySeconds else { return }
        for key in plays.keys { plays[key]?.flow.begin(at: now) }
        for id in transfers.keys { transfers[id]?.flow.begin(at: now) }
    }

    /// How many plays a report would have if it had all.
    package static func playCount(_ samples: ActivitySamples, at now: Moment) -> Int {
        Set(samples.plays.filter { isShown($0, at: now) }.map(\.key)).count +| samples.hiddenPlays
    }

    private static func isShown(_ play: PlaySample, at now: Moment) -> Bool {
        play.requests > 0
            || now.age(of: play.lastUse) < (play.isPresentation ? idlePresentationSeconds : idleSeconds)
    }

    // MARK: Plays

    /// The samples of one play, from several loops, as one.
    private static func joined(_ samples: [PlaySample]) -> [PlaySample] {
        Dictionary(grouping: samples, by: \.key).values.compactMap { parts in
            // Where a request runs is where it plays, whatever has ended since on another loop.
            let parts = parts.sorted { ($0.requests > 0 ? 1 : 0, $0.lastUse) > ($1.requests > 0 ? 1 : 0, $1.lastUse) }
            guard var play = parts.first else { return nil }
            for part in parts.dropFirst() {
                play.began = min(play.began, part.began)
                if part.requests > 0 { play.offsets += part.offsets }
                play.length = play.length ?? part.length
                play.title = play.title ?? part.title
                play.isPresentation = play.isPresentation || part.isPresentation
                play.segments += part.segments
                play.isStarved = play.isStarved && (part.requests == 0 || part.isStarved)
                play.requests += part.requests
                play.fromCache +|= part.fromCache
                play.fromOrigin +|= part.fromOrigin
            }
            play.segments = latest(play.segments)
            return play
        }
    }

    /// The segment that was requested last of each rendition, in the order of the names.
    private static func latest(_ segments: [PlaySample.Segment]) -> [PlaySample.Segment] {
        Dictionary(grouping: segments, by: \.rendition).values
            .compactMap { $0.max { $0.requestedAt < $1.requestedAt } }.sorted { $0.rendition < $1.rendition }
    }

    private mutating func report(_ sample: PlaySample, at now: Moment, _ mask: URLMask) -> PlayReport {
        var play = plays[sample.key] ?? begin(sample, at: now)
        play.flow.note(sample.fromCache +| sample.fromOrigin, at: now)
        plays[sample.key] = play
        var report = PlayReport(
            id: play.id, player: PlayerName(userAgent: sample.key.player.agent).description,
            client: sample.key.player.address,
            title: Self.title(sample, mask), url: sample.url, state: Self.state(sample, play, at: now),
            since: play.since)
        let agent = sample.key.player.agent
        report.userAgent = agent.isEmpty ? nil : agent.printable
        report.isPresentation = sample.isPresentation
        report.segments = sample.segments.map {
            .init(rendition: PlayReport.Segment.name($0.rendition), number: $0.position + 1, count: $0.count)
        }
        report.position = sample.offsets.first
        report.positions = Array(sample.offsets.prefix(Self.mostPositions))
        report.length = sample.length
        (report.bytesFromCache, report.bytesFromOrigin) = (sample.fromCache, sample.fromOrigin)
        report.rate = play.flow.bytesPerSecond(at: now)
        report.requests = sample.requests
        return report
    }

    private mutating func begin(_ sample: PlaySample, at now: Moment) -> Play {
        lastID +|= 1
        return Play(id: lastID, since: now.time(of: sample.began), flow: Flow(at: now))
    }

    private static func state(_ sample: PlaySample, _ play: Play, at now: Moment) -> PlayReport.State {
        guard sample.requests > 0 else { return .idle }
        if sample.isStarved, play.flow.bytes == 0 { return .starting }
        guard play.flow.isStill(at: now) else { return .active }
        return sample.isStarved ? .stalled : .buffered
    }

    private static func title(_ sample: PlaySample, _ mask: URLMask) -> String {
        DisplayName(title: sample.title, url: mask.masked(sample.url)).description.printable(
            upTo: longestTitle, keepsJoiners: true)
    }

    // MARK: Transfers

    private mutating func report(_ fetch: FetchSample, at now: Moment) -> TransferReport {
        let received = max(0, fetch.arrived -| fetch.from)
        var transfer = transfers[fetch.id] ?? Transfer(since: now.time(of: fetch.began), flow: Flow(at: now))
        transfer.flow.note(received, at: now)
        transfers[fetch.id] = transfer
        return TransferReport(
            id: fetch.id, urlText: fetch.url, host: (try? OriginURL(url: fetch.requestedURL))?.authority ?? "",
            reason: fetch.reason.rawValue, phase: fetch.phase, purposes: fetch.purposes, from: fetch.from, to: fetch.to,
            received: received, rate: transfer.flow.bytesPerSecond(at: now), since: transfer.since)
    }
}
