import CachePolicy
import DiskCache

extension Subscription {
    /// IDs count up from 1 to at most this.
    static let lastID: Int64 = 1 << 53
    /// Seconds.
    private static let longestLifetime: Int64 = 31_536_000

    /// The table `subscription`. A row without one of the first values is dropped as a whole.
    private static let required: [TableColumn<Subscription>] = [
        .init("id", \.id, .integer(in: 1...lastID), nullFor: 0),
        .init("url", \.url, .url),
        .init("added", \.added, .time),
    ]
    /// An invalid value is replaced by its default.
    private static let others: [TableColumn<Subscription>] = [
        .init("address", \.address, .url),
        .init("latest", \.options.latest, .integer(in: SubscriptionOptions.latestRange)),
        .init("category", \.options.category, .text),
        .init("every", \.options.every, .integer(in: SubscriptionOptions.everyRange)),
        .init("keep", \.options.keep, .text({ EpisodeLimit($0) }, { $0.text })),
        .init("title_pattern", \.options.title, .text({ TitlePattern($0) }, { $0.text })),
        .init("title", \.title, .text),
        .init("etag", \.validators.etag, .text),
        .init("last_modified", \.validators.lastModified, .text),
        .init("lifetime", \.lifetime, .integer(in: 0...longestLifetime)),
        .init("wants_latest", \.wantsLatest, .flag),
        .init("checked", \.checked, .time),
        .init("read", \.read, .time),
        .init("due", \.due, .time),
        .init("failures", \.failures, .integer(in: 0...1000)),
        .init("broken_since", \.brokenSince, .time),
        .init("message", \.message, .text),
        .init("cap", \.options.caps, .text({ DownloadCap.list($0) }, { DownloadCap.text($0) }), nullFor: []),
        .init(
            "skipped", \.skipped,
            .text({ $0.split(separator: "\n").map(String.init) }, { $0.joined(separator: "\n") }), nullFor: []),
        .init("gaps", \.gaps, .integer(in: 0...1000)),
    ]

    static let columns = required + others

    /// Reads a row. Only its number, its URL and the time of subscribing are indispensable.
    /// - Parameter damaged: called with the name of each column whose value was replaced.
    /// - Throws: for a row without one of those.
    init(_ row: StoredRow, damaged: (String) -> Void = { _ in }) throws(RowDamage) {
        let (url, added) = (
            try StoredForm<OriginURL>.url.read(row, "url"), try StoredForm<Double>.time.read(row, "added")
        )
        self.init(url, options: SubscriptionOptions(), added: added, due: added)
        wantsLatest = false
        for column in Self.required { try column.read(row, &self) }
        for column in Self.others {
            do throws(RowDamage) { try column.read(row, &self) } catch { damaged(column.name) }
        }
        validators = FeedValidators(etag: validators.etag, lastModified: validators.lastModified)
    }
}

extension KnownEpisode {
    /// The table `episode`.
    static let columns: [TableColumn<KnownEpisode>] = [
        .init("id", \.id, .integer(in: 1...Subscription.lastID), nullFor: 0),
        .init("subscription", \.subscription, .integer()),
        .init("guid", \.guid, .text),
        .init("file", \.file, .text),
        .init("url", \.url, .url),
        .init("title", \.title, .text),
        .init("published", \.published, .integer()),
        .init("found", \.found, .integer()),
        .init("state", \.state, .name),
        .init("played", \.played, .integer()),
        .init("listed", \.listed, .url),
    ]

    /// - Throws: for a row with an invalid value, which is dropped as a whole.
    init(_ row: StoredRow) throws(RowDamage) {
        self.init(file: "", url: try StoredForm<OriginURL>.url.read(row, "url"), found: 0, state: .passedOver)
        for column in Self.columns { try column.read(row, &self) }
    }
}
