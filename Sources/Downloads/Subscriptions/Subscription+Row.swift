import CachePolicy
import DiskCache
import GRDB

extension Subscription {
    static let columnNames = [
        "id", "url", "address", "latest", "category", "every", "keep", "title_pattern", "title", "etag",
        "last_modified", "lifetime", "wants_latest", "added", "checked", "read", "due", "failures", "broken_since",
        "message", "cap", "skipped", "gaps",
    ]

    /// The values of the columns with these names.
    var columns: [(any DatabaseValueConvertible)?] {
        [
            id == 0 ? nil : id, url.absolute, address.absolute, options.latest, options.category, options.every,
            options.keep?.text, options.title?.text, title, validators.etag, validators.lastModified, lifetime,
            wantsLatest, added, checked, read, due, failures, brokenSince, message,
            options.caps.isEmpty ? nil : DownloadCap.text(options.caps),
            skipped.isEmpty ? nil : skipped.joined(separator: "\n"), gaps,
        ]
    }

    /// Plausible times, in seconds since 1970.
    private static let times: ClosedRange<Double> = -1e15...1e15

    /// Reads a row. Only its number, its URL and the time of subscribing are indispensable: an invalid value in another
    /// column is replaced by its default.
    /// - Parameter damaged: called with the name of each column whose value was replaced.
    /// - Throws: for a row without one of those, which is dropped as a whole.
    init(_ row: StoredRow, damaged: @escaping (String) -> Void = { _ in }) throws(RowDamage) {
        func time(_ column: String) throws(RowDamage) -> Double { try row.real(column, in: Self.times) }
        self.init(try row.url("url"), options: SubscriptionOptions(), added: try time("added"), due: 0)
        id = try row.integer("id", in: 1...Self.lastID)
        let lenient = LenientRow(row: row, damaged: damaged)
        options = SubscriptionOptions(lenient)
        due = lenient.value("due", or: added, time)
        address = lenient.value("address", or: url, row.url)
        title = lenient.optional("title", row.text)
        validators = FeedValidators(
            etag: lenient.optional("etag", row.text), lastModified: lenient.optional("last_modified", row.text))
        lifetime = lenient.optional("lifetime") { (column) throws(RowDamage) in
            try row.integer(column, in: 0...Self.longestLifetime)
        }
        wantsLatest = lenient.value("wants_latest", or: false, row.flag)
        (checked, read) = (lenient.optional("checked", time), lenient.optional("read", time))
        failures = lenient.value("failures", or: 0) { (column) throws(RowDamage) in
            Int(try row.integer(column, in: 0...1000))
        }
        gaps = lenient.value("gaps", or: 0) { (column) throws(RowDamage) in
            Int(try row.integer(column, in: 0...1000))
        }
        (brokenSince, message) = (lenient.optional("broken_since", time), lenient.optional("message", row.text))
        skipped = lenient.optional("skipped", row.text)?.split(separator: "\n").map(String.init) ?? []
    }

    /// IDs count up from 1 to at most this.
    static let lastID: Int64 = 1 << 53
    /// Seconds.
    private static let longestLifetime: Int64 = 31_536_000
}

extension SubscriptionOptions {
    fileprivate init(_ lenient: LenientRow) {
        self.init()
        let row = lenient.row
        latest = lenient.value("latest", or: latest) { (column) throws(RowDamage) in
            let range = Self.latestRange
            // no trap: constants
            return Int(try row.integer(column, in: Int64(range.lowerBound)...Int64(range.upperBound)))
        }
        every = lenient.value("every", or: every) { (column) throws(RowDamage) in
            try row.integer(column, in: Self.everyRange)
        }
        category = lenient.optional("category", row.text)
        keep = lenient.optional("keep") { (column) throws(RowDamage) in
            guard let limit = EpisodeLimit(try row.text(column)) else {
                throw RowDamage(column: column, reason: "is not a limit")
            }
            return limit
        }
        caps =
            lenient.optional("cap") { (column) throws(RowDamage) in
                guard let caps = DownloadCap.list(try row.text(column)) else {
                    throw RowDamage(column: column, reason: "is not a cap")
                }
                return caps
            } ?? []
        title = lenient.optional("title_pattern", row.text).flatMap(TitlePattern.init)
    }
}

/// A row whose invalid values are replaced by defaults.
private struct LenientRow {
    let row: StoredRow
    /// Called with the name of each column whose value was replaced.
    let damaged: (String) -> Void

    func value<Value>(_ column: String, or fallback: Value, _ read: (String) throws(RowDamage) -> Value) -> Value {
        do throws(RowDamage) { return try read(column) } catch {
            damaged(column)
            return fallback
        }
    }

    /// For a column that may be NULL.
    func optional<Value>(_ column: String, _ read: (String) throws(RowDamage) -> Value) -> Value? {
        value(column, or: nil) { (column) throws(RowDamage) in try row.optional(column, read) }
    }
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
