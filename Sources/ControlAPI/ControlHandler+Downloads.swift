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
        receiveJSON(ReceivedChange.self, exchange) { [self] received in
            answer(exchange) { [downloads] _ in
                DownloadList(downloads: try downloads.perform { try $0.change(selection, received.change) })
            }
        }
    }

    // MARK: Settings

    func reportDownloadSettings(_ exchange: Exchange) {
        answer(exchange) { [downloads] _ in downloads.snapshots.summary.settings }
    }

    func changeDownloadSettings(_ exchange: Exchange) {
        receiveJSON(ReceivedDownloadSettings.self, exchange) { [self] change in
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

/// A list of downloads.
package struct DownloadList: Codable, Sendable {
    package let downloads: [Download]
}

/// The number of dropped history entries.
package struct RemovedDownloads: Codable, Sendable {
    package let removed: Int
}

/// A part of a listing, with the total number of entries.
private struct DownloadPage: Encodable {
    let downloads: [Download]
    let summary: DownloadTotals
    let total: Int
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

// MARK: Requests

/// `{"action": "pause"}`, `{"priority": "high", "position": 0}`
private struct ReceivedChange: ReceivedValue {
    static let example = "{\"action\": \"pause\"}"

    let change: DownloadChange

    private enum CodingKeys: String, CodingKey, CaseIterable {
        case action, priority, position, limitRate
    }

    init(from decoder: any Decoder) throws {
        try decoder.refuseMembers(except: CodingKeys.allCases.map(\.stringValue))
        let members = try decoder.container(keyedBy: CodingKeys.self)
        let actions = DownloadChange.Action.allCases.map(\.rawValue).joined(separator: ", ")
        change = DownloadChange(
            action: try members.decodeIfThere(DownloadChange.Action.self, forKey: .action, form: "one of \(actions)"),
            priority: try members.decodeIfThere(
                Download.Priority.self, forKey: .priority, form: Download.Priority.form),
            position: try members.decodeIfThere(Int.self, forKey: .position, form: "a whole number"),
            limitRate: try members.decodeIfThere(ReceivedSize.self, forKey: .limitRate)?.bytes)
    }
}

/// `{"max_active": 5, "limit_rate": "2MB"}`; either may be missing, and 0 is no limit.
private struct ReceivedDownloadSettings: ReceivedValue {
    static let example = "{\"max_active\": 5}"

    let maxActive: Int?
    let limitRate: Int64?

    private enum CodingKeys: String, CodingKey, CaseIterable {
        case maxActive, limitRate
    }

    init(from decoder: any Decoder) throws {
        try decoder.refuseMembers(except: CodingKeys.allCases.map(\.stringValue))
        let members = try decoder.container(keyedBy: CodingKeys.self)
        let range = DownloadSettings.maxActiveRange
        maxActive = try members.decodeIfThere(
            Int.self, forKey: .maxActive, form: "\(range.lowerBound) to \(range.upperBound)", range.contains
        )
        limitRate = try members.decodeIfThere(ReceivedSize.self, forKey: .limitRate)?.bytes
        guard maxActive != nil || limitRate != nil else {
            throw ControlError(422, "nothing to change: give max_active, limit_rate or both")
        }
    }
}

extension Download.Priority {
    static let form = allCases.map(\.rawValue).joined(separator: ", ")
}

extension DownloadError {
    /// The corresponding status.
    var status: Int {
        switch kind {
        case .unknown, .notSubscribed: 404
        case .conflict: 409
        case .invalid: 422
        case .unreadable: 502
        case .closed: 503
        case .disk: description.contains("disk is full") ? 507 : 500
        }
    }
}
