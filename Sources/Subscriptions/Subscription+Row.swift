import CachePolicy
import DiskCache
import GRDB

extension Subscription {
    static let columnNames = [
        "id", "url", "address", "latest", "category", "every", "keep", "title_pattern", "title", "etag",
        "last_modified", "lifetime", "wants_latest", "added", "checked", "read", "due", "failures", "broken_since",
        "message", "cap",
    ]

    /// The values of the columns with these names.
    var columns: [(any DatabaseValueConvertible)?] {
        [
            id == 0 ? nil : id, url.absolute, address.absolute, options.latest, options.category, options.every,
            options.keep?.text, options.title?.text, title, validators.etag, validators.lastModified, lifetime,
            wantsLatest, added, checked, read, due, failures, brokenSince, message,
            options.caps.isEmpty ? nil : DownloadCap.text(options.caps),
        ]
    }

    /// Plausible times, in seconds since 1970.
    private static let times: ClosedRange<Double> = -1e15...1e15

    /// - Throws: for a row with an invalid value, which is dropped as a whole.
    init(_ row: StoredRow) throws(RowDamage) {
        func time(_ column: String) throws(RowDamage) -> Double { try row.real(column, in: Self.times) }
        var options = SubscriptionOptions()
        let (latest, every) = (SubscriptionOptions.latestRange, SubscriptionOptions.everyRange)
        // no trap: constants
        options.latest = Int(try row.integer("latest", in: Int64(latest.lowerBound)...Int64(latest.upperBound)))
        options.every = try row.integer("every", in: every)
        options.category = try row.optional("category", row.text)
        options.keep = try row.optional("keep") { (column) throws(RowDamage) in
            guard let limit = EpisodeLimit(try row.text(column)) else {
                throw RowDamage(column: column, reason: "is not a limit")
            }
            return limit
        }
        options.caps =
            try row.optional("cap") { (column) throws(RowDamage) in
                guard let caps = DownloadCap.list(try row.text(column)) else {
                    throw RowDamage(column: column, reason: "is not a cap")
                }
                return caps
            } ?? []
        options.title = try row.optional("title_pattern", row.text).flatMap(TitlePattern.init)
        self.init(try row.url("url"), options: options, added: try time("added"), due: try time("due"))
        id = try row.integer("id", in: 1...Self.lastID)
        address = try row.url("address")
        title = try row.optional("title", row.text)
        validators = FeedValidators(
            etag: try row.optional("etag", row.text), lastModified: try row.optional("last_modified", row.text))
        lifetime = try row.optional("lifetime") { (column) throws(RowDamage) in
            try row.integer(column, in: 0...Self.longestLifetime)
        }
        wantsLatest = try row.flag("wants_latest")
        (checked, read) = (try row.optional("checked", time), try row.optional("read", time))
        failures = Int(try row.integer("failures", in: 0...1000))
        (brokenSince, message) = (try row.optional("broken_since", time), try row.optional("message", row.text))
    }

    /// IDs count up from 1 to at most this.
    static let lastID: Int64 = 1 << 53
    /// Seconds.
    private static let longestLifetime: Int64 = 31_536_000
}

extension KnownEpisode {
    static let columnNames = ["id", "subscription", "guid", "file", "url", "title", "published", "found", "state"]

    /// The values of the columns with these names.
    func columns(of subscription: Int64) -> [(any DatabaseValueConvertible)?] {
        [id == 0 ? nil : id, subscription, guid, file, url.absolute, title, published, found, state.rawValue]
    }

    /// - Throws: for a row with an invalid value, which is dropped as a whole.
    init(_ row: StoredRow) throws(RowDamage) {
        guard let state = State(rawValue: try row.text("state")) else {
            throw RowDamage(column: "state", reason: "is not a state")
        }
        self.init(
            id: try row.integer("id", in: 1...Subscription.lastID), guid: try row.optional("guid", row.text),
            file: try row.text("file"), url: try row.url("url"), title: try row.optional("title", row.text),
            published: try row.optional("published") { (column) throws(RowDamage) in try row.integer(column) },
            found: try row.integer("found"), state: state)
    }
}

extension StoredRow {
    fileprivate func url(_ column: String) throws(RowDamage) -> OriginURL {
        guard let url = try? OriginURL(url: try text(column)) else {
            throw RowDamage(column: column, reason: "is not a URL")
        }
        return url
    }
}
