import Activity
import CachePolicy
import ControlAPI
import Downloads
import EventIO
import HTTPModel
import Synchronization

/// The live state: what is played, fetched and downloaded at this moment. From any thread.
///
/// Nothing is collected until somebody asks. Then each loop is asked for a sample of its plays and fetches, and a
/// thread that may block joins them, compares them with what was there before, and writes them as JSON, once for all
/// who watch. Watchers have one state at a time: a slow one misses the states in between.
final class LiveState: Sendable {
    /// Collects samples, and passes them on once, from any thread; nil if the cache is being closed.
    typealias Collect = @Sendable (@escaping @Sendable (ActivitySamples?) -> Void) -> Void

    /// A look at the live state.
    struct Look: Sendable {
        let report: NowReport
        let fetches: [FetchSample]
    }

    /// A state as the events carry it.
    struct Page: Sendable {
        let revision: UInt64
        let text: EventText
    }

    private let collect: Collect
    let downloads: DownloadSnapshots
    private let policy: Current<ProxyPolicy>
    private let metrics: ProxyMetrics
    private let statistics: @Sendable () -> StatsSnapshot
    private let perform: @Sendable (@escaping @Sendable () -> Void) -> Bool
    private let moment: @Sendable () -> ActivityBook.Moment
    /// The streams of events that are followed.
    let streams = OpenAnswers("streams of events", most: 128, mostOfAClient: 64)
    /// The lists of segments that are being sent: each keeps what it is made of.
    let listings = OpenAnswers("lists of segments", most: 4, mostOfAClient: 4)
    let downloadEvents: DownloadEvents
    private let state = Mutex(State())
    /// Taken by one collection at a time, and never by a loop: so reports are compared and written under it.
    private let record = Mutex(Record())

    fileprivate struct Watcher {
        let showsSecrets: Bool
        let wake: @Sendable () -> Void
    }

    fileprivate struct State {
        var isCollecting = false
        /// When the last collection began; monotonic, in nanoseconds.
        var collectedAt: UInt64 = 0
        var waiting: [@Sendable (Look?) -> Void] = []
        var watchers: [UInt64: Watcher] = [:]
        var nextWatcher: UInt64 = 0
        var revision: UInt64 = 0
        /// The state that watchers get, with and without secrets: of each form that somebody watches, always the last.
        var pages: [Bool: Page] = [:]
    }

    /// What a collection remembers for the next.
    fileprivate struct Record {
        var book = ActivityBook()
        /// What watchers got last; nil if there are none.
        var report: NowReport?
        /// What hid the secrets in that.
        var mask: URLMask?
        /// The downloads of the last report as JSON, with and without secrets.
        var writtenDownloads: [Bool: (downloads: [Download], mask: URLMask?, text: [UInt8])] = [:]
        /// The page of downloads, as of a revision.
        var page: (revision: UInt64, downloads: [Download], hidden: Int)?
    }

    /// How long watchers wait for the next state at least.
    static let refreshSeconds = 0.5

    /// - Parameters:
    ///   - statistics: returns the current counters.
    ///   - perform: runs work on a thread that may block, and returns whether it will.
    ///   - moment: returns the time.
    init(
        collect: @escaping Collect, downloads: DownloadSnapshots, policy: Current<ProxyPolicy>,
        metrics: ProxyMetrics, statistics: @escaping @Sendable () -> StatsSnapshot,
        perform: @escaping @Sendable (@escaping @Sendable () -> Void) -> Bool,
        moment: @escaping @Sendable () -> ActivityBook.Moment
    ) {
        (self.collect, self.downloads, self.policy) = (collect, downloads, policy)
        (self.metrics, self.statistics, self.perform, self.moment) = (metrics, statistics, perform, moment)
        downloadEvents = DownloadEvents(downloads, policy, perform: perform)
    }

    /// Looks at what happens now.
    /// - Parameter then: called once, on a thread that may block; with nil if the cache is being closed.
    func look(_ then: @escaping @Sendable (Look?) -> Void) {
        let instant = moment().instant
        let begins = state.withLock { state in
            state.waiting.append(then)
            return state.begins(at: instant)
        }
        if begins { run() }
    }

    func look() async -> Look? {
        await withCheckedContinuation { continuation in look { continuation.resume(returning: $0) } }
    }

    // MARK: Watchers

    /// - Parameter wake: called from any thread whenever there is a new state, until `unwatch`; must not block.
    func watch(showsSecrets: Bool, _ wake: @escaping @Sendable () -> Void) -> UInt64 {
        state.withLock { state in
            state.nextWatcher &+= 1
            state.watchers[state.nextWatcher] = Watcher(showsSecrets: showsSecrets, wake: wake)
            return state.nextWatcher
        }
    }

    func unwatch(_ id: UInt64) {
        state.withLock { state in
            state.watchers[id] = nil
            // The next watcher of this form must not be greeted with a state that is long over.
            state.pages = state.pages.filter { state.watched.contains($0.key) }
        }
    }

    /// Collects the state, unless that was done a moment ago.
    func refresh() {
        let instant = moment().instant
        let begins = state.withLock { state in
            // A little less, as timers are not exact.
            let isOld = Double(instant -| state.collectedAt) / 1e9 >= Self.refreshSeconds * 0.8
            return (isOld || !state.unwritten.isEmpty) && state.begins(at: instant)
        }
        if begins { run() }
    }

    /// The state that a watcher gets; nil before the first.
    func page(showsSecrets: Bool) -> Page? { state.withLock { $0.pages[showsSecrets] } }

    // MARK: Collecting

    private func run() {
        collect { [self] samples in
            if samples == nil || !perform({ self.finish(samples) }) { finish(nil) }
        }
    }

    /// Only now may another collection begin: none overtakes this one.
    private func finish(_ samples: ActivitySamples?) {
        let look = samples.map(report)
        let waiting = state.withLock { $0.end() }
        for then in waiting { then(look) }
    }

    /// Writes a state once for all who watch, and wakes them.
    private func report(_ samples: ActivitySamples) -> Look {
        let (statistics, moment, page, queue) = (statistics(), moment(), currentDownloads(), downloads.summary)
        let mask = policy.value.mask
        let (watched, unwritten) = state.withLock { ($0.watched, $0.unwritten) }
        let samples = titled(samples)
        let (report, texts) = record.withLock { record in
            let found = record.book.look(samples, at: moment, mask: mask)
            var report = NowReport(
                time: moment.time, plays: found.plays, transfers: found.transfers, downloads: page.downloads,
                queue: queue, cache: .init(size: statistics[\.size], limit: statistics[\.limit]),
                served: .init(
                    fromCache: statistics[\.bytesFromCache], fromOrigin: statistics[\.bytesFromUpstream],
                    hitRatio: statistics.hitRatio))
            (report.cache.pinned, report.cache.free) = (metrics.pinnedBytes.value, metrics.freeBytes.value)
            (report.cache.minFree, report.served.failures) = (statistics[\.minFree], metrics.responses.failures)
            report.hidden.plays = found.hidden.plays
            report.hidden.transfers = found.hidden.transfers
            report.hidden.downloads = page.hidden
            return (report, record.texts(of: report, for: watched, unwritten: unwritten, mask))
        }
        let wakes = state.withLock { $0.put(texts) }
        for wake in wakes { wake() }
        return Look(report: report, fetches: samples.fetches)
    }

    /// What was downloaded has the title of its download.
    private func titled(_ samples: ActivitySamples) -> ActivitySamples {
        var samples = samples
        for place in samples.plays.indices {
            guard let url = try? OriginURL(url: samples.plays[place].url),
                let title = downloads.downloads(of: url).lazy.compactMap(\.title).first
            else { continue }
            samples.plays[place].title = title
        }
        return samples
    }

    private func currentDownloads() -> (downloads: [Download], hidden: Int) {
        let revision = downloads.revision
        if let known = record.withLock({ $0.page }), known.revision == revision {
            return (known.downloads, known.hidden)
        }
        let page = downloads.page(NowReport.mostDownloads)
        record.withLock { $0.page = (revision, page.downloads, page.hidden) }
        return page
    }
}

extension LiveState.State {
    /// - Returns: whether the caller has to collect; otherwise that is being done.
    fileprivate mutating func begins(at instant: UInt64) -> Bool {
        guard !isCollecting else { return false }
        (isCollecting, collectedAt) = (true, instant)
        return true
    }

    fileprivate mutating func end() -> [@Sendable (LiveState.Look?) -> Void] {
        isCollecting = false
        defer { waiting = [] }
        return waiting
    }

    /// The forms, with secrets or without, that somebody watches.
    fileprivate var watched: Set<Bool> { Set(watchers.values.map(\.showsSecrets)) }

    /// Those of them that have no state yet.
    fileprivate var unwritten: Set<Bool> { watched.subtracting(pages.keys) }

    /// Takes new states, except of forms that nobody watches any more.
    /// - Returns: what wakes those who watch.
    fileprivate mutating func put(_ texts: [Bool: EventText]) -> [@Sendable () -> Void] {
        let forms = watched.intersection(texts.keys)
        revision &+= 1
        for form in forms { pages[form] = texts[form].map { LiveState.Page(revision: revision, text: $0) } }
        return watchers.values.filter { forms.contains($0.showsSecrets) }.map(\.wake)
    }
}

extension LiveState.Record {
    /// A report as an event in the forms that are watched: in all of them if it is news, or has other secrets than the
    /// last, otherwise in those that have no state yet.
    fileprivate mutating func texts(
        of new: NowReport, for watched: Set<Bool>, unwritten: Set<Bool>, _ mask: URLMask
    ) -> [Bool: EventText] {
        writtenDownloads = writtenDownloads.filter { watched.contains($0.key) }
        let forms = new.differs(from: report) || mask != self.mask ? watched : unwritten
        (report, self.mask) = (watched.isEmpty ? nil : new, mask)
        var texts: [Bool: EventText] = [:]
        for showsSecrets in forms {
            // A report has nothing that JSON cannot express.
            texts[showsSecrets] = (try? line(of: new, showsSecrets: showsSecrets, showsSecrets ? nil : mask)).map {
                EventText(EventText.event("now", $0))
            }
        }
        return texts
    }

    /// The most bytes of an event: clients that do not read hold one each.
    private static let mostBytes = 256 << 10

    /// A report as JSON. Its downloads, which may be many and change seldom, are written only if they have changed.
    private mutating func line(of report: NowReport, showsSecrets: Bool, _ mask: URLMask?) throws -> [UInt8] {
        var members = try report.members(mask)
        if let known = writtenDownloads[showsSecrets], known.downloads == report.downloads, known.mask == mask {
            members.set("downloads", known.text)
        } else {
            let text = try members.set("downloads", report.downloads, mask)
            writtenDownloads[showsSecrets] = (report.downloads, mask, text)
        }
        let line = members.line
        guard line.count > Self.mostBytes, let half = report.half else { return line }
        return try self.line(of: half, showsSecrets: showsSecrets, mask)
    }
}
