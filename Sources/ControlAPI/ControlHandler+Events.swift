import Downloads
import HTTPTransport

extension ControlHandler {
    /// Sends events of downloads as server-sent events, until the client disconnects.
    func followDownloads(_ exchange: Exchange, _ parameters: ControlParameters) throws(ControlError) {
        let events = DownloadEvents(
            downloads.snapshots, session: session, ids: try parameters.ids().map(Set.init),
            hasEnded: try parameters.flag("ended"),
            lastID: exchange.request.value(of: "Last-Event-ID"), mask: mask(for: exchange))
        exchange.respond(EventText.head, body: EventBody(exchange, events))
    }

    /// Sends the live state as server-sent events, until the client disconnects: all of it, whenever it has changed.
    func followNow(_ exchange: Exchange) {
        let events = NowEvents(live: live, showsSecrets: mask(for: exchange) == nil)
        exchange.respond(EventText.head, body: EventBody(exchange, events))
    }
}

/// The live state for one client: an event has all of it, so that nothing is lost if one is missed.
private struct NowEvents: EventBatches {
    let live: LiveState
    let showsSecrets: Bool
    /// The revision last sent.
    private var revision: UInt64 = 0
    private var page: LiveState.Page?

    init(live: LiveState, showsSecrets: Bool) { (self.live, self.showsSecrets) = (live, showsSecrets) }

    mutating func begin() {
        guard let page = live.page(showsSecrets: showsSecrets), page.revision > revision else { return }
        (self.page, revision) = (page, page.revision)
    }

    mutating func next() -> [UInt8]? {
        defer { page = nil }
        return page.map { EventText.event("now", $0.line) }
    }

    func watch(_ wake: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
        let id = live.watch(showsSecrets: showsSecrets, wake)
        return { [live] in live.unwatch(id) }
    }

    var refreshSeconds: Double? { LiveState.refreshSeconds }

    func refresh() { live.refresh() }
}
