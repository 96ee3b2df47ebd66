import CachePolicy
import ControlAPI
import DiskCache
import Downloads
import EventIO
import HTTPModel
import HTTPTransport
import Presentations
import Synchronization

/// What is cached.
struct ResourceRoutes: Sendable {
    let policy: Current<ProxyPolicy>
    let downloads: OnDemand<DownloadManager>
    let titles: PresentationTitles
    /// The lists of segments that are being sent.
    let listings: OpenAnswers
    /// Seconds since 1970.
    let now: @Sendable () -> Int64

    var routes: [ControlRoute] {
        [
            ControlRoute(\.resources, list),
            ControlRoute(\.resource, show),
            ControlRoute(\.changeResource, change),
            ControlRoute(\.removeResources, remove),
            ControlRoute(\.importResource, importFile),
            ControlRoute(\.file, hold),
        ]
    }

    private func show(_ request: ControlRequest<Void, ResourceDetail>) throws(ControlError) {
        let url = try request.parameters.requiredURL()
        guard try request.parameters.flag(.segments) else {
            return request.answer(isLong: true) { [policy] in try $0.existing(url, policy.value) }
        }
        let (listing, mask) = (try listings.open(request.exchange.countedClient), request.mask)
        request.perform(isLong: true) { [policy] store in
            var (detail, renditions) = (try store.detail(url, policy.value), [PresentationContents.Rendition]())
            renditions = try PresentationContents.describe(
                &detail.resource, in: store, policy.value, listsSegments: true, spreads: false)
            return SegmentListing(
                try ControlJSON.line(detail, masked: mask),
                lists: renditions.filter { $0.report.segmentList != nil }.map { ($0.examined, $0.segmentReports) }, mask
            )
        } then: { [store = request.store] exchange, pieces in
            var response = Response(200, length: nil)
            response.describeJSON()
            let source = PieceSource(exchange, store) {
                try withExtendedLifetime(listing) { try pieces.next() }
            }
            exchange.respond(response, body: source)
        }
    }

    private static let defaultLimit = 100
    private static let maxLimit = 10_000

    private func list(_ request: ControlRequest<Void, ResourceListing>) throws(ControlError) {
        let parameters = request.parameters
        var query = ResourceQuery()
        if let sort = parameters[.sort] {
            guard let order = CachedResource.Order(rawValue: sort) else {
                let known = CachedResource.Order.allCases.map(\.rawValue).joined(separator: ", ")
                throw ControlError(400, "sort is \(known), not \(sort.prefix(100))")
            }
            query.order = order
        }
        query.filter = parameters[.filter].flatMap { $0.isEmpty ? nil : $0 }
        query.category = parameters[.category].flatMap { $0.isEmpty ? nil : $0 }
        query.after = parameters[.after].flatMap { $0.isEmpty ? nil : $0 }
        if query.after != nil, query.order != .name { throw ControlError(400, "after needs sort=name") }
        query.mask = request.mask
        query.limit = try parameters.number(.limit, in: 1...Self.maxLimit) ?? Self.defaultLimit
        query.offset = try parameters.number(.offset, in: 0...Int(Int32.max)) ?? 0
        let isBrief = try parameters.flag(.brief)
        try request.answerList(isLong: true, urls: { $0.resources.map(\.urlText) }) { [query, policy, titles] store in
            var listing = try store.resources(query)
            titles.add(to: &listing.resources, in: store)
            if !isBrief {
                PresentationContents.describe(&listing.resources, in: store, policy.value)
            }
            return listing
        }
    }

    private func change(_ request: ControlRequest<ResourceChange, ResourceDetail>) throws(ControlError) {
        let url = try request.parameters.requiredURL()
        request.receive { change in
            request.answer { [policy] store in
                let policy = policy.value
                guard
                    try policy.find(url, { try store.setPinned(change.pinned, $0, isByHand: true) ? true : nil }) != nil
                else {
                    throw ControlError.notCached(url.absolute)
                }
                return try store.existing(url, policy)
            }
        }
    }

    private func remove(_ request: ControlRequest<Void, RemovalReport>) throws(ControlError) {
        let parameters = request.parameters
        let isDryRun = try parameters.flag(.dryRun)
        let (all, played, text) = (try parameters.flag(.all), try parameters.flag(.played), parameters[.olderThan])
        switch try parameters.url() {
        case let url? where !all && !played && text == nil:
            request.answer { [policy, downloads] store in
                let policy = policy.value
                if let download = try downloads.value().snapshots.unfinished(of: url, under: policy) {
                    throw ControlError.beingDownloaded(url.absolute, by: download.id)
                }
                guard let report = try policy.find(url, { try store.remove($0, isDryRun: isDryRun) }) else {
                    throw ControlError.notCached(url.absolute)
                }
                return report
            }
        case nil where all != (played || text != nil):
            var selection = RemovalSelection()
            (selection.isPlayed, selection.includesPinned) = (played, try parameters.flag(.includePinned))
            if let text {
                guard let span = TimeSpan(text) else {
                    throw ControlError(400, "older_than is a time such as 30d, 12h or 90m, not \(text.prefix(100))")
                }
                selection.before = now() -| span.seconds
            }
            request.answer { [selection, policy, downloads] store in
                let snapshots = selection.includesPinned ? try downloads.value().snapshots : nil
                return try store.removeAll(selection, isDryRun: isDryRun) { key in
                    guard let snapshots, let url = try? OriginURL(url: String(key.text.prefix { $0 != " " })) else {
                        return false
                    }
                    return snapshots.unfinished(of: url, under: policy.value) != nil
                }
            }
        default:
            throw ControlError(
                400, "say what to remove: url=URL, all=true, or older_than=30d or played=true or both")
        }
    }

    // MARK: Files

    /// Sends the path of a resource's complete file, and keeps the file as it is until the client closes the
    /// connection. With `growing`, accepts an incomplete file too, and sends which ranges of it are present as they
    /// arrive.
    private func hold(_ request: ControlRequest<Void, HeldFile>) throws(ControlError) {
        let url = try request.parameters.requiredURL()
        let isGrowing = try request.parameters.flag(.growing)
        let isWanted = Atomic(true)
        request.exchange.onAbort { isWanted.store(false, ordering: .relaxed) }
        request.perform(isLong: true) { [policy] store in
            let isWanted = { isWanted.load(ordering: .relaxed) }
            let hold =
                try isGrowing
                ? store.growingFile(of: url, policy.value, isWanted: isWanted)
                : store.completeFile(of: url, policy.value, isWanted: isWanted)
            let codings = hold.codings.isEmpty ? nil : hold.codings
            return (hold, try ControlJSON.line(HeldFile(path: hold.path, length: hold.length, codings: codings)))
        } then: { exchange, held in
            var response = Response(200, length: nil)
            response.describeJSON()
            // The response does not end, so no other can follow it.
            (response.closes, response.isEndless) = (true, isGrowing)
            exchange.respond(response, body: HoldSource(exchange, held.0, line: held.1, isGrowing: isGrowing))
        }
    }

    /// Imports a resource from the body.
    private func importFile(_ request: ControlRequest<Void, CachedResource>) throws(ControlError) {
        let url = try request.parameters.requiredURL()
        let replaces = try request.parameters.flag(.replace)
        let exchange = request.exchange
        guard exchange.request.value(of: "Content-Length") != nil, let length = exchange.bodyLength else {
            throw ControlError(411, "the length of the file is unknown: send Content-Length")
        }
        guard length > 0 else { throw ControlError(422, "the body is empty: send the bytes of the file") }
        let fields = try Self.keptFields(exchange.request)
        request.perform { [policy] store in
            try Importer(policy.value.resolve(url).key, length: length, fields: fields, replaces: replaces, in: store)
        } then: { [store = request.store, mask = request.mask] exchange, importer in
            ImportAnswer(exchange, importer, store, mask).start()
        }
    }

    private static func keptFields(_ request: RequestHead) throws(ControlError) -> HeaderFields {
        // RFC 9110 §14.5: a part is not taken for the whole.
        if request.value(of: "Content-Range") != nil {
            throw ControlError(400, "the body is a part of a file (Content-Range): send the whole file")
        }
        if let coding = request.value(of: "Content-Encoding"), coding.lowercased() != "identity" {
            throw ControlError(415, "the body is encoded (Content-Encoding): send the file as it is")
        }
        var fields = HeaderFields()
        if let type = request.value(of: "Content-Type") { fields.append("Content-Type", type) }
        if let tag = request.value(of: "ETag") {
            guard EntityTag(parsing: tag) != nil else {
                throw ControlError(400, "ETag is not an entity tag: write it in double quotes, such as \"v1\"")
            }
            fields.append("ETag", tag)
        }
        if let date = request.value(of: "Last-Modified") {
            guard HTTPDate.parse(date) != nil else {
                throw ControlError(400, "Last-Modified is not a date: write it as \(HTTPDate.format(784_111_777))")
            }
            fields.append("Last-Modified", date)
        }
        return fields
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
