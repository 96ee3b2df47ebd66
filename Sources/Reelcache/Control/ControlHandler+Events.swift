import ControlAPI
import HTTPTransport

extension ControlHandler {
    /// Sends events of downloads as server-sent events, until the client disconnects.
    func followDownloads(_ exchange: Exchange, _ parameters: ControlParameters) throws(ControlError) {
        let wish = DownloadEvents.Wish(
            session: session, ids: try parameters.ids().map(Set.init), showsSecrets: mask(for: exchange) == nil)
        let hasEnded = try parameters.flag("ended")
        let stream = try live.streams.open(exchange.countedClient)
        let events = live.downloadEvents
        let cursor = events.begin(wish, hasEnded: hasEnded, lastID: exchange.request.value(of: "Last-Event-ID"))
        exchange.respond(
            EventText.head,
            body: EventBody(exchange, stream, from: cursor, watch: events.watch) {
                events.part(wish, after: $0, then: $1)
            })
    }

    /// Sends the live state as server-sent events, until the client disconnects: all of it, whenever it has changed,
    /// so that nothing is lost if one is missed.
    func followNow(_ exchange: Exchange) throws(ControlError) {
        let (stream, showsSecrets) = (try live.streams.open(exchange.countedClient), mask(for: exchange) == nil)
        let watch: EventBody<UInt64>.Watch = { [live] wake in
            let id = live.watch(showsSecrets: showsSecrets, wake)
            return { live.unwatch(id) }
        }
        exchange.respond(
            EventText.head,
            body: EventBody(exchange, stream, from: UInt64(0), refresh: live.refresh, watch: watch) {
                [live] revision, then in
                let page = live.page(showsSecrets: showsSecrets).flatMap { $0.revision > revision ? $0 : nil }
                then(.init(text: page?.text, cursor: page?.revision ?? revision, isLast: true))
            })
    }
}
