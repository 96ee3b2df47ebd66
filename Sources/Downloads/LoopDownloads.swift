import CacheFill
import CachePolicy
import EventIO
import HTTPModel
import Presentations
import Synchronization
import Upstream

/// Runs downloads on the loops of a cache, in turn. Not to be called on a loop.
package final class LoopDownloads: DownloadSource {
    private let loops: [LoopBound<LoopFiller>]
    private let filler: CacheFiller
    private let line: DownloadLine
    private let turn = Atomic<Int>(0)

    package init(_ loops: [LoopBound<LoopFiller>], of filler: CacheFiller) {
        self.loops = loops
        self.filler = filler
        line = filler.downloadLine()
    }

    package var isOffline: Bool { filler.policy.value.isOffline }

    package func begin(_ order: DownloadOrder, onEnd end: @escaping @Sendable (DownloadEnd) -> Void)
        -> any RunningDownload
    {
        let loop = loops[turn.wrappingAdd(1, ordering: .relaxed).oldValue % loops.count]
        let pace = FillPace(line, rate: order.bytesPerSecond, isScheduled: !order.isAtOnce)
        let wanted = PresentationFill.Order(
            url: order.url, first: order.wantedFirst, ends: order.ends, connections: order.connections,
            isPinned: order.isPinned, renditions: order.renditions, recording: order.recording)
        let words = filler.policy.value.adviceWords
        return loop.loop.sync {
            var state: PresentationState?
            let fill = PresentationFill(wanted, key: order.key, pace: pace, on: loop.value) { result in
                let progress = state?.progress ?? DownloadProgress()
                switch result {
                case .completed: end(.completed(progress))
                case .failed(let fault): end(.failed(DownloadFault(fault, adviceWords: words), progress))
                }
            }
            state = fill.state
            // Not at once: the end could be reported before the caller knows the download.
            loop.loop.afterCallback { fill.start() }
            return Running(fill: LoopBound(fill, on: loop.loop), state: fill.state, pace: pace)
        }
    }

    package func limitAll(to rate: Int64?) { line.limit(to: rate) }

    package func limitScheduled(to rate: Int64?) { line.limitScheduled(to: rate) }

    private struct Running: RunningDownload {
        let fill: LoopBound<PresentationFill>
        let state: PresentationState
        let pace: FillPace

        var progress: DownloadProgress { state.progress }
        var fetched: Int64 { pace.fetched }
        func limit(to rate: Int64?) { pace.limit(to: rate) }
        func stop() { fill.loop.sync { fill.value.stop() } }
    }
}

extension DownloadOrder {
    fileprivate var recording: RecordingOrder? {
        options.recordFor.flatMap { seconds in recordedFrom.map { RecordingOrder(began: $0, seconds: seconds) } }
    }
}

extension DownloadFault {
    init(_ fault: PresentationFault, adviceWords words: Advice.Words) {
        switch fault {
        case .first(let error): self.init(error, adviceWords: words)
        case .part(let name, let url, let error):
            let fault = DownloadFault(error, adviceWords: words)
            self.init(
                fault.kind, "\(name), \(url.absolute.printable): \(fault.message)", lacksRoom: fault.lacksRoom)
        case .away(let url, let error):
            let fault = DownloadFault(error, adviceWords: words)
            let kind = if case .final = fault.kind { Kind.network } else { fault.kind }
            self.init(kind, "the stream \(url.absolute.printable): \(fault.message)")
        default: self.init(.final, "\(fault)")
        }
    }

    /// - Parameter words: the message is stored as it is worded here.
    init(_ error: PrefetchError, adviceWords words: Advice.Words = .settings) {
        switch error {
        case .fill(.upstream(.addressRefused(let host, let address))):
            self.init(
                .final,
                "\(UpstreamError.addressRefused(host: host, address: address)); to fetch from it, \(Advice.allow(host: host).text(in: words))"
            )
        case .fill(.upstream(let error)):
            self.init(error.isTransient ? .network : .final, "\(error)", unreachable: error.unreachableHost)
        case .fill(.busy(let seconds)):
            self.init(.busy(retryAfter: Double(seconds)), "\(FillError.busy(retryAfter: seconds))")
        case .fill(.offline): self.init(.offline, "the proxy is offline and contacts no origin")
        case .fill(.originStatus(let code)): self.init(code: code, retryAfter: 0)
        case .fill(.notStored(let why)), .noRoom(let why):
            self.init(
                .final,
                "there is no room for it in the cache: \(why); raise max_size, free disk space, or unpin something",
                lacksRoom: true)
        case .fill(.unlocated(let failure)): self.init(failure.isTransient ? .network : .final, "\(failure)")
        case .fill(.strayPage): self.init(.final, Self.words(.page))
        case .fill(let error): self.init(.network, "\(error)")
        case .status(let code, let seconds): self.init(code: code, retryAfter: seconds)
        case .notStorable(let reason): self.init(.final, Self.words(reason))
        case .unreadable: self.init(.network, "cannot read the cache: see the log")
        case .store(let error): self.init(.final, "\(error)")
        case .moved: self.init(.moved, "each time it is found, its media is cached under another name")
        }
    }

    private init(code: Int, retryAfter seconds: Double) {
        let kind: Kind = code == 429 || code >= 500 ? .busy(retryAfter: seconds > 0 ? seconds : nil) : .final
        self.init(kind, "the origin answered \(code)" + (Self.meaning[code].map { ": \($0)" } ?? ""))
    }

    private static let meaning = [
        401: "it requires credentials, which a rule can send", 403: "it forbids this",
        404: "there is nothing at this URL",
        410: "it is gone",
        416: "it has no such part", 429: "too many requests", 503: "it is busy",
    ]

    private static func words(_ reason: Storing.Reason?) -> String {
        switch reason {
        case .noStore: "its origin forbids storing it (no-store): a rule with ignore_no_store stores it anyway"
        case .forOneUser:
            "its origin allows only private caches to store it (private), and this one is shared: set cache: private for its mount, "
                + "or for all, where the users trust each other"
        case .authorization:
            "its origin does not let a shared cache store what credentials open: set cache: private for its mount, or for all, "
                + "where the users trust each other"
        case .rule: "a rule keeps it out of the cache"
        case .tooLong: "it is longer than a rule's max_object allows"
        case .varyAny: "it depends on more than the request (Vary), so it cannot be stored"
        case .encoded: "it arrives encoded, in a form that cannot be stored"
        case .page:
            "a web page came in place of the media, perhaps from a login page or a captive portal: open the URL in a browser; "
                + "a rule with store_pages stores such pages"
        case .fields: "the origin's header fields are too long to be stored"
        case .setCookie, .requestNoStore, .status, nil: "the origin's response cannot be stored"
        }
    }
}
