import ControlAPI
import Downloads
import Foundation
import HTTPModel
import HTTPTransport

/// Downloads, their settings and their history.
struct DownloadRoutes: Sendable {
    let downloads: OnDemand<DownloadManager>
    let events: DownloadEvents
    /// The streams of events that are followed.
    let streams: OpenAnswers
    /// Distinguishes the events of this proxy from those of its predecessors.
    let session: String

    var routes: [ControlRoute] {
        [
            ControlRoute(\.downloads, list),
            ControlRoute(\.addDownloads, add),
            ControlRoute(\.changeDownloads, change),
            ControlRoute(\.downloadSettings) { [downloads] request in
                request.answer { _ in try downloads.value().snapshots.summary.settings }
            },
            ControlRoute(\.changeDownloadSettings, changeSettings),
            ControlRoute(\.downloadHistory, listHistory),
            ControlRoute(\.clearDownloadHistory) { [downloads] request in
                request.answer { _ in RemovedDownloads(removed: try downloads.value().perform { try $0.clearHistory() })
                }
            },
            ControlRoute(\.downloadEvents, follow),
        ]
    }

    /// The largest list of orders: ten thousand with long URLs fit.
    private static let maxOrderBytes = 16 << 20

    /// By default, downloads that have not ended.
    private func list(_ request: ControlRequest<Void, DownloadPage>) throws(ControlError) {
        let parameters = request.parameters
        let ids = try parameters.ids().map(Set.init)
        // A download that is named is listed whatever its state.
        let states =
            try parameters.states()
            ?? (ids == nil ? Set(Download.State.allCases.filter { !$0.hasEnded }) : Set(Download.State.allCases))
        let category = parameters[.category]
        let order = try ListOrder(parameters[.sort])
        let limit = try parameters.number(.limit, in: 1...Int(Int32.max))
        let offset = try parameters.number(.offset, in: 0...Int(Int32.max)) ?? 0
        request.answer { [downloads] _ in
            let listing = try downloads.value().snapshots.listing {
                states.contains($0.state) && ids?.contains($0.id) ?? true
                    && (category == nil || $0.category == category)
            }
            let page = order.sorted(listing.downloads).dropFirst(offset).prefix(limit ?? .max)
            return DownloadPage(downloads: Array(page), summary: listing.summary, total: listing.downloads.count)
        }
    }

    private func add(_ request: ControlRequest<DownloadOrders, DownloadList>) {
        request.receiveBytes(upTo: Self.maxOrderBytes) { body in
            request.perform { [downloads, mask = request.mask, parameters = request.parameters] _ in
                let orders = try ReceivedJSON.decode(DownloadOrders.self, from: body).downloads.map { order in
                    var order = order
                    order.url = try parameters.origin(of: order.url)
                    return order
                }
                var newest: Int64 = 0
                _ = try downloads.value().snapshots.listing { report in
                    newest = max(newest, report.id)
                    return false
                }
                let reports = try downloads.value().perform { try $0.add(orders) }
                return (
                    isNew: reports.contains { $0.id > newest },
                    line: try ControlJSON.line(DownloadList(downloads: reports), masked: mask)
                )
            } then: { exchange, added in
                // RFC 9110 §15.3.2: 201 only if the request created a download.
                exchange.respond(added.isNew ? 201 : 200, json: added.line)
            }
        }
    }

    private func change(_ request: ControlRequest<DownloadChange, DownloadList>) throws(ControlError) {
        let selection: DownloadSelection
        switch (try request.parameters.ids(), try request.parameters.flag(.all)) {
        case (let ids?, false): selection = .ids(ids)
        case (let ids?, true): selection = .possible(ids)
        case (nil, true): selection = .all
        case (nil, false):
            throw ControlError(
                400, "say which downloads: id=3,7 or all=true, or both to change as many of these as possible")
        }
        request.receive { change in
            request.answer { [downloads] _ in
                DownloadList(downloads: try downloads.value().perform { try $0.change(selection, change) })
            }
        }
    }

    private func changeSettings(_ request: ControlRequest<DownloadSettingsChange, DownloadTotals>) {
        request.receive { change in
            request.answer { [downloads] _ in
                try downloads.value().perform { manager in
                    var settings = manager.snapshots.summary.settings
                    if let maxActive = change.maxActive { settings.maxActive = maxActive }
                    if let limitRate = change.limitRate { settings.limitRate = limitRate == 0 ? nil : limitRate }
                    manager.set(settings)
                    return manager.snapshots.summary
                }
            }
        }
    }

    private func listHistory(_ request: ControlRequest<Void, DownloadList>) throws(ControlError) {
        let limit = try request.parameters.number(.limit, in: 1...Int(Int32.max))
        let (category, states) = (request.parameters[.category], try request.parameters.states())
        request.answer { [downloads] _ in
            let found = try downloads.value().perform { $0.history(limit: limit, category: category, states: states) }
            return DownloadList(downloads: found)
        }
    }

    /// Sends events of downloads as server-sent events, until the client disconnects.
    private func follow(_ request: ControlRequest<Void, Void>) throws(ControlError) {
        let exchange = request.exchange
        let filter = DownloadEvents.Filter(
            session: session, ids: try request.parameters.ids().map(Set.init), showsSecrets: request.mask == nil)
        let hasEnded = try request.parameters.flag(.ended)
        let stream = try streams.open(exchange.countedClient)
        let cursor = events.begin(filter, hasEnded: hasEnded, lastID: exchange.request.value(of: "Last-Event-ID"))
        exchange.respond(
            EventText.head,
            body: EventBody(exchange, stream, from: cursor, watch: events.watch) { [events] in
                events.part(filter, after: $0, then: $1)
            })
    }
}

extension DownloadRoutes {
    /// The order of a list of downloads.
    private enum ListOrder: String, CaseIterable {
        /// That in which they run.
        case queue
        /// Those that ended last come first, and those that have not ended last.
        case ended

        init(_ text: String?) throws(ControlError) {
            guard let order = text.map(ListOrder.init(rawValue:)) ?? .queue else {
                let names = Self.allCases.map(\.rawValue).joined(separator: " or ")
                throw ControlError(400, "sort is \(names), not \((text ?? "").prefix(100))")
            }
            self = order
        }

        /// - Parameter downloads: in the order in which they run.
        func sorted(_ downloads: [Download]) -> [Download] {
            switch self {
            case .queue: downloads
            case .ended:
                downloads.sorted { ($0.finished ?? .distantPast, $0.id) > ($1.finished ?? .distantPast, $1.id) }
            }
        }
    }
}

extension ControlParameters {
    /// States separated by commas, or `all`; nil if the parameter is missing.
    fileprivate func states() throws(ControlError) -> Set<Download.State>? {
        guard let text = self[.state] else { return nil }
        if text == "all" { return Set(Download.State.allCases) }
        return Set(
            try text.split(separator: ",", omittingEmptySubsequences: false).map { name throws(ControlError) in
                guard let state = Download.State(rawValue: String(name)) else {
                    let names = Download.State.allCases.map(\.rawValue).joined(separator: ", ")
                    throw ControlError(
                        400, "state is all, or some of \(names) separated by commas, not \(name.prefix(100))")
                }
                return state
            })
    }
}
