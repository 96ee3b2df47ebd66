import CachePolicy
import Downloads
import HTTPModel
import HTTPTransport
import Playlists

extension ControlHandler {
    /// The largest list of orders: ten thousand with long URLs fit.
    private static let maxOrderBytes = 16 << 20

    /// By default, downloads that have not ended.
    func listDownloads(_ exchange: Exchange, _ parameters: ControlParameters) throws(ControlError) {
        let ids = try parameters.ids().map(Set.init)
        // A download that is named is listed whatever its state.
        let states =
            try parameters.states()
            ?? (ids == nil ? Set(DownloadState.allCases.filter { !$0.hasEnded }) : Set(DownloadState.allCases))
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
                let orders = try ReceivedJSON.decode(ReceivedOrders.self, from: body).orders
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
    package let downloads: [DownloadReport]
}

/// The number of dropped history entries.
package struct RemovedDownloads: Codable, Sendable {
    package let removed: Int
}

/// A part of a listing, with the total number of entries.
private struct DownloadPage: Encodable {
    let downloads: [DownloadReport]
    let summary: DownloadSummary
    let total: Int
}

/// The order of a list of downloads.
private enum ListOrder: String, CaseIterable {
    /// That in which they run.
    case queue
    /// Those that ended last come first, and those that have not ended last.
    case ended

    /// - Parameter downloads: in the order in which they run.
    func sorted(_ downloads: [DownloadReport]) -> [DownloadReport] {
        switch self {
        case .queue: downloads
        case .ended: downloads.sorted { ($0.finished ?? 0, $0.id) > ($1.finished ?? 0, $1.id) }
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
    fileprivate func states() throws(ControlError) -> Set<DownloadState>? {
        guard let text = self["state"] else { return nil }
        if text == "all" { return Set(DownloadState.allCases) }
        return Set(
            try text.split(separator: ",", omittingEmptySubsequences: false).map { name throws(ControlError) in
                guard let state = DownloadState(rawValue: String(name)) else {
                    let names = DownloadState.allCases.map(\.rawValue).joined(separator: ", ")
                    throw ControlError(
                        400, "state is all, or some of \(names) separated by commas, not \(name.prefix(100))")
                }
                return state
            })
    }
}

// MARK: Requests

/// `{"downloads": [{"url": "https://example.org/film.mp4", "priority": "high"}]}`
private struct ReceivedOrders: ReceivedValue {
    static let example = "{\"downloads\": [{\"url\": \"https://example.org/film.mp4\"}]}"

    let orders: [DownloadOrder]

    private enum CodingKeys: String, CodingKey, CaseIterable {
        case downloads
    }

    init(from decoder: any Decoder) throws {
        try decoder.refuseMembers(except: CodingKeys.allCases.map(\.stringValue))
        orders = try decoder.container(keyedBy: CodingKeys.self).decode([ReceivedOrder].self, forKey: .downloads).map(
            \.order)
        guard !orders.isEmpty else {
            throw ControlError(
                422,
                "there is nothing to download: list at least one, such as {\"url\": \"https://example.org/film.mp4\"}")
        }
    }
}

/// One order.
private struct ReceivedOrder: Decodable {
    let order: DownloadOrder

    enum CodingKeys: String, CodingKey, CaseIterable {
        case url, first, limitRate, priority, connections, category, pinned, quality, audio, subtitles, all
        case last, atOnce
        case recordFor = "for"
    }

    init(from decoder: any Decoder) throws {
        try decoder.refuseMembers(except: CodingKeys.allCases.map(\.stringValue))
        let members = try decoder.container(keyedBy: CodingKeys.self)
        guard let url = try members.decodeIfThere(String.self, forKey: .url, form: "a media URL") else {
            throw ControlError(422, "\(decoder.place ?? "it") has no url: send the URL to download")
        }
        var order = try Self.order(url)
        order.first = try members.decodeIfThere(ReceivedSize.self, forKey: .first)?.bytes
        order.last = try members.decodeIfThere(ReceivedSize.self, forKey: .last)?.bytes
        order.limitRate = try members.decodeIfThere(ReceivedSize.self, forKey: .limitRate)?.bytes
        if order.limitRate == 0 { order.limitRate = nil }
        if let priority = try members.decodeIfThere(
            DownloadPriority.self, forKey: .priority, form: DownloadPriority.form)
        {
            order.priority = priority
        }
        if let connections = try members.decodeIfThere(Int.self, forKey: .connections, form: "a whole number") {
            order.connections = connections
        }
        order.category = try members.decodeIfThere(String.self, forKey: .category, form: "a string")
        if let isPinned = try members.decodeIfThere(Bool.self, forKey: .pinned, form: "true or false") {
            order.isPinned = isPinned
        }
        order.isAtOnce = try members.decodeIfThere(Bool.self, forKey: .atOnce, form: "true or false") ?? false
        order.renditions = try Self.renditions(members)
        order.recordFor = try members.decodeIfThere(ReceivedSpan.self, forKey: .recordFor)?.seconds
        self.order = order
    }

    private static func renditions(_ members: KeyedDecodingContainer<CodingKeys>) throws -> RenditionChoice {
        typealias Languages = RenditionChoice.Languages
        var choice = RenditionChoice()
        if let quality = try members.text(
            .quality, form: RenditionChoice.Quality.forms, RenditionChoice.Quality.init)
        {
            choice.quality = quality
        }
        if let audio = try members.text(.audio, form: Languages.forms, Languages.init) { choice.audio = audio }
        if let subtitles = try members.text(.subtitles, form: Languages.forms, Languages.init) {
            choice.subtitles = subtitles
        }
        choice.isEverything =
            try members.decodeIfThere(Bool.self, forKey: .all, form: "true or false") ?? choice.isEverything
        return choice
    }

    private static func order(_ url: String) throws(ControlError) -> DownloadOrder {
        do throws(DownloadError) { return DownloadOrder(url: try OriginURL(ordered: url)) } catch {
            throw ControlError(error)
        }
    }
}

extension KeyedDecodingContainer<ReceivedOrder.CodingKeys> {
    /// The value that a string stands for.
    fileprivate func text<Value>(_ key: Key, form: String, _ read: (String) -> Value?) throws -> Value? {
        try decodeIfThere(String.self, forKey: key, form: form) { read($0) != nil }.flatMap(read)
    }
}

/// An order as it is sent to a proxy.
package struct SentOrder: Encodable {
    private let order: DownloadOrder

    package init(_ order: DownloadOrder) { self.order = order }

    package func encode(to encoder: any Encoder) throws {
        var members = encoder.container(keyedBy: ReceivedOrder.CodingKeys.self)
        try members.encode(order.url.absolute, forKey: .url)
        try members.encodeIfPresent(order.first, forKey: .first)
        try members.encodeIfPresent(order.last, forKey: .last)
        try members.encodeIfPresent(order.limitRate, forKey: .limitRate)
        try members.encode(order.priority, forKey: .priority)
        try members.encode(order.connections, forKey: .connections)
        try members.encodeIfPresent(order.category, forKey: .category)
        try members.encode(order.isPinned, forKey: .pinned)
        if order.isAtOnce { try members.encode(true, forKey: .atOnce) }
        let choice = order.renditions, standard = RenditionChoice()
        if choice.quality != standard.quality { try members.encode(choice.quality.text, forKey: .quality) }
        if choice.audio != standard.audio { try members.encode(choice.audio.text, forKey: .audio) }
        if choice.subtitles != standard.subtitles { try members.encode(choice.subtitles.text, forKey: .subtitles) }
        if choice.isEverything { try members.encode(true, forKey: .all) }
        try members.encodeIfPresent(order.recordFor, forKey: .recordFor)
    }
}

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
            priority: try members.decodeIfThere(DownloadPriority.self, forKey: .priority, form: DownloadPriority.form),
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

extension DownloadPriority {
    fileprivate static let form = allCases.map(\.rawValue).joined(separator: ", ")
}

extension DownloadError {
    /// The corresponding status.
    var status: Int {
        switch kind {
        case .unknown: 404
        case .conflict: 409
        case .invalid: 422
        case .disk: description.contains("disk is full") ? 507 : 500
        }
    }
}
