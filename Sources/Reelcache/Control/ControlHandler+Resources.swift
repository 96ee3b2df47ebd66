import CachePolicy
import ControlAPI
import DiskCache
import Downloads
import Foundation
import HTTPModel
import HTTPTransport
import Presentations
import Synchronization

extension ControlHandler {
    /// Responds with one resource, or with a page of all resources.
    func find(_ exchange: Exchange, _ parameters: ControlParameters) throws(ControlError) {
        guard let url = try parameters.url() else { return try list(exchange, parameters) }
        if let other = ["sort", "filter", "after", "limit", "offset", "brief", "urls"].first(where: parameters.has) {
            throw ControlError(400, "\(other) cannot be combined with url")
        }
        guard try parameters.flag("segments") else {
            return answerLong(exchange) { [policy] in try $0.existing(url, policy.value) }
        }
        let (listing, mask) = (try live.listings.open(exchange.countedClient), mask(for: exchange))
        perform(exchange, isLong: true) { [policy] store in
            var (detail, renditions) = (try store.detail(url, policy.value), [PresentationContents.Rendition]())
            renditions = try PresentationContents.describe(
                &detail.resource, in: store, policy.value, listsSegments: true, spreads: false)
            return SegmentListing(
                try ControlJSON.line(detail, masked: mask),
                lists: renditions.filter { $0.report.segmentList != nil }.map { ($0.examined, $0.segmentReports) }, mask
            )
        } then: { [store] exchange, pieces in
            var response = Response(200, length: nil)
            response.describeJSON()
            let source = PieceSource(exchange, store) {
                try withExtendedLifetime(listing) { try pieces.next() }
            }
            exchange.respond(response, body: source)
        }
    }

    /// As `answer`, for work that reads the playlists and segments of presentations, so that shorter requests need
    /// not wait for it.
    func answerLong<Value: Encodable & Sendable>(
        _ exchange: Exchange, _ work: @escaping @Sendable (CacheStore) throws -> Value
    ) {
        let mask = mask(for: exchange)
        perform(exchange, isLong: true) { store in
            try ControlJSON.line(work(store), masked: mask)
        } then: { exchange, line in
            exchange.respond(200, json: line)
        }
    }

    private static let defaultLimit = 100
    private static let maxLimit = 10_000

    private func list(_ exchange: Exchange, _ parameters: ControlParameters) throws(ControlError) {
        var query = ResourceQuery()
        if let sort = parameters["sort"] {
            guard let order = ResourceQuery.Order(rawValue: sort) else {
                throw ControlError(
                    400,
                    "sort is \(ResourceQuery.Order.allCases.map(\.rawValue).joined(separator: ", ")), not \(sort.prefix(100))"
                )
            }
            query.order = order
        }
        query.filter = parameters["filter"].flatMap { $0.isEmpty ? nil : $0 }
        query.after = parameters["after"].flatMap { $0.isEmpty ? nil : $0 }
        if query.after != nil, query.order != .name { throw ControlError(400, "after needs sort=name") }
        query.mask = mask(for: exchange)
        query.limit = try parameters.number("limit", in: 1...Self.maxLimit) ?? Self.defaultLimit
        query.offset = try parameters.number("offset", in: 0...Int(Int32.max)) ?? 0
        let isBrief = try parameters.flag("brief")
        let urls = { @Sendable (listing: ResourceListing) in listing.resources.map(\.url) }
        try answerList(exchange, parameters, isLong: true, urls: urls) { [query, policy, titles] store in
            var listing = try store.resources(query)
            if isBrief {
                titles.add(to: &listing.resources, in: store)
            } else {
                PresentationContents.describe(&listing.resources, in: store, policy.value)
            }
            return listing
        }
    }

    func change(_ exchange: Exchange, _ parameters: ControlParameters) throws(ControlError) {
        let url = try parameters.requiredURL()
        receiveJSON(ResourceChange.self, exchange) { [self] change in
            answer(exchange) { [policy] store in
                let policy = policy.value
                guard try policy.find(url, { try store.setPinned(change.pinned, $0) ? true : nil }) != nil else {
                    throw ControlError.notCached(url.absolute)
                }
                return try store.existing(url, policy)
            }
        }
    }

    func remove(_ exchange: Exchange, _ parameters: ControlParameters) throws(ControlError) {
        let isDryRun = try parameters.flag("dry_run")
        switch (try parameters.url(), try parameters.flag("all"), parameters["older_than"]) {
        case (let url?, false, nil):
            answer(exchange) { [policy, downloads] store in
                let policy = policy.value
                if let download = downloads.snapshots.unfinished(of: url, under: policy) {
                    throw ControlError.beingDownloaded(url.absolute, by: download.id)
                }
                guard let report = try policy.find(url, { try store.remove($0, isDryRun: isDryRun) }) else {
                    throw ControlError.notCached(url.absolute)
                }
                return report
            }
        case (nil, true, nil):
            answer(exchange) { try $0.removeAll(before: nil, isDryRun: isDryRun) }
        case (nil, false, let text?):
            guard let span = TimeSpan(text) else {
                throw ControlError(400, "older_than is a time such as 30d, 12h or 90m, not \(text.prefix(100))")
            }
            answer(exchange) { [now] in try $0.removeAll(before: now() -| span.seconds, isDryRun: isDryRun) }
        default:
            throw ControlError(400, "say what to remove: one of url=URL, all=true or older_than=30d")
        }
    }
}

extension CacheStore {
    /// - Throws: also if nothing of it is cached.
    fileprivate func existing(_ url: OriginURL, _ policy: ProxyPolicy) throws -> ResourceDetail {
        var detail = try detail(url, policy)
        try PresentationContents.describe(&detail.resource, in: self, policy)
        return detail
    }

    fileprivate func detail(_ url: OriginURL, _ policy: ProxyPolicy) throws -> ResourceDetail {
        guard let detail = try policy.find(url, resource) else { throw ControlError.notCached(url.absolute) }
        return detail
    }
}

extension ControlHandler {
    /// A line of JSON whose lists of segments are written some at a time: a few bytes of a manifest stand for a
    /// million.
    final class SegmentListing: Sendable {
        /// How many segments there are at most, and the reports on some of them.
        typealias List = (count: Int, reports: @Sendable (Range<Int>) -> [SegmentReport])

        static let pieceCount = 256

        private let mask: URLMask?
        private let state: Mutex<State>

        private struct State: Sendable {
            /// What stands around the lists.
            var texts: ArraySlice<[UInt8]>
            var lists: ArraySlice<List>
            /// The place in the first list; nil before it.
            var position: Int?
            var isBegun = false
        }

        /// - Parameter line: has an empty list of segments for each of `lists`.
        init(_ line: [UInt8], lists: [List], _ mask: URLMask?) {
            // Not in a string: there quotation marks are escaped.
            var (texts, rest): ([[UInt8]], ArraySlice<UInt8>) = ([], line[...])
            let empty = Array("\"segment_list\":[]".utf8)
            while texts.count < lists.count, let place = rest.firstRange(of: empty) {
                texts.append(Array(rest[..<(place.upperBound - 1)]))
                rest = rest[(place.upperBound - 1)...]
            }
            self.mask = mask
            state = Mutex(State(texts: (texts + [Array(rest)])[...], lists: lists[...]))
        }

        /// The next bytes; nil at the end.
        func next() throws -> [UInt8]? {
            try state.withLock { state in
                guard let position = state.position, let list = state.lists.first else {
                    state.position = 0
                    return state.texts.popFirst()
                }
                let end = min(position + Self.pieceCount, list.count)
                let line = try ControlJSON.line(list.reports(position..<end), masked: mask).dropFirst().dropLast(2)
                let piece = (state.isBegun && !line.isEmpty ? [ASCII.comma] : []) + line
                state.isBegun = state.isBegun || !line.isEmpty
                state.position = end
                if end == list.count {
                    state.lists.removeFirst()
                    (state.position, state.isBegun) = (nil, false)
                }
                return piece
            }
        }
    }
}
