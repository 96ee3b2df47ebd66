import ControlAPI
import Downloads
import Foundation
import HTTPModel
import HTTPTransport

extension ControlHandler {
    /// The largest list of orders: ten thousand with long URLs fit.
    private static let maxOrderBytes = 16 << 20

    /// By default, downloads that have not ended.
    func listDownloads(_ exchange: Exchange, _ parameters: ControlParameters) throws(ControlError) {
        let ids = try parameters.ids().map(Set.init)
        // A download that is named is listed whatever its state.
        let states =
            try parameters.states()
            ?? (ids == nil ? Set(Download.State.allCases.filter { !$0.hasEnded }) : Set(Download.State.allCases))
        let category = parameters["category"]
        let order = try parameters.downloadOrder()
        let limit = try parameters.number("limit", in: 1...Int(Int32.max))
        let offset = try parameters.number("offset", in: 0...Int(Int32.max)) ?? 0
        answer(exchange) { [downloads] _ in
            let listing = downloads.snapshots.listing {
                states.contains($0.state) && ids?.contains($0.id) ?? true
                    && (category == nil || $0.category == category)
            }
            let page = order.sorted(listing.downloads).dropFirst(offset).prefix(limit ?? .max)
            return DownloadPage(downloads: Array(page), summary: listing.summary, total: listing.downloads.count)
        }
    }

    func addDownloads(_ exchange: Exchange) {
        let mask = mask(for: exchange)
        receiveBody(exchange, upTo: Self.maxOrderBytes) { [self] body in
            perform(exchange) { [downloads] _ in
                let orders = try ReceivedJSON.decode(DownloadOrders.self, from: body).downloads
                var newest: Int64 = 0
                _ = downloads.snapshots.listing { report in
                    newest = max(newest, report.id)
                    return false
                }
                let reports = try downloads.perform { try $0.add(orders) }
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

    func changeDownloads(_ exchange: Exchange, _ parameters: ControlParameters) throws(ControlError) {
        let selection: DownloadSelection
        switch (try parameters.ids(), try parameters.flag("all")) {
        case (let ids?, false): selection = .ids(ids)
        case (let ids?, true): selection = .possible(ids)
        case (nil, true): selection = .all
        case (nil, false):
            throw ControlError(
                400, "say which downloads: id=3,7 or all=true, or both to change as many of these as possible")
        }
        receiveJSON(DownloadChange.self, exchange) { [self] change in
            answer(exchange) { [downloads] _ in
                DownloadList(downloads: try downloads.perform { try $0.change(selection, change) })
            }
        }
    }

    // MARK: Settings

    func reportDownloadSettings(_ exchange: Exchange) {
        answer(exchange) { [downloads] _ in downloads.snapshots.summary.settings }
    }

    func changeDownloadSettings(_ exchange: Exchange) {
        receiveJSON(DownloadSettingsChange.self, exchange) { [self] change in
            answer(exchange) { [downloads] _ in
                downloads.perform { manager in
                    var settings = manager.snapshots.summary.settings
                    if let maxActive = change.maxActive { settings.maxActive = maxActive }
                    if let limitRate = change.limitRate { settings.limitRate = limitRate == 0 ? nil : limitRate }
                    manager.set(settings)
                    return manager.snapshots.summary
                }
            }
        }
    }

    // MARK: History

    func listDownloadHistory(_ exchange: Exchange, _ parameters: ControlParameters) throws(ControlError) {
        let limit = try parameters.number("limit", in: 1...Int(Int32.max))
        let category = parameters["category"]
        answer(exchange) { [downloads] _ in
            DownloadList(downloads: downloads.perform { $0.history(limit: limit, category: category) })
        }
    }

    func clearDownloadHistory(_ exchange: Exchange) {
        answer(exchange) { [downloads] _ in RemovedDownloads(removed: try downloads.perform { try $0.clearHistory() }) }
    }
}

/// The order of a list of downloads.
private enum ListOrder: String, CaseIterable {
    /// That in which they run.
    case queue
    /// Those that ended last come first, and those that have not ended last.
    case ended

    /// - Parameter downloads: in the order in which they run.
    func sorted(_ downloads: [Download]) -> [Download] {
        switch self {
        case .queue: downloads
        case .ended:
            downloads.sorted { ($0.finished ?? .distantPast, $0.id) > ($1.finished ?? .distantPast, $1.id) }
        }
    }
}

extension ControlParameters {
    fileprivate func downloadOrder() throws(ControlError) -> ListOrder {
        guard let text = self["sort"] else { return .queue }
        if let order = ListOrder(rawValue: text) { return order }
        let names = ListOrder.allCases.map(\.rawValue).joined(separator: " or ")
        throw ControlError(400, "sort is \(names), not \(text.prefix(100))")
    }

    /// States separated by commas, or `all`; nil if the parameter is missing.
    fileprivate func states() throws(ControlError) -> Set<Download.State>? {
        guard let text = self["state"] else { return nil }
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
