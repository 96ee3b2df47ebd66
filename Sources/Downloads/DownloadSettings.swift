import CachePolicy

/// Settings for all downloads.
package struct DownloadSettings: Codable, Sendable, Equatable {
    package static let maxActiveRange = 1...64

    /// The number of downloads that run at once.
    package var maxActive = 3
    /// Bytes per second of all together; nil for no limit.
    package var limitRate: Int64?
    /// When downloads run, and at what rate; nil for always. The lower of its rate and `limitRate` applies.
    package var schedule: DownloadSchedule?
    /// The most bytes that downloads may fetch from origins; none for any number.
    package var caps: [DownloadCap] = []
    /// Further caps for the downloads of a feed, by the URL under which it is subscribed.
    package var feedCaps: [String: [DownloadCap]] = [:]
    /// For how many seconds a download whose origin fails is retried, until it fails for good; 0 for three attempts.
    package var retryFor: Int64 = 7 * 86400

    package init() {}
}

extension DownloadSettings {
    /// The caps of feeds are those of subscriptions, which report them.
    private enum CodingKeys: String, CodingKey { case maxActive, limitRate, schedule, caps }

    /// - Throws: `DecodingError`, `RuleError` for a schedule or cap that is malformed.
    package init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        maxActive = try members.decode(Int.self, forKey: .maxActive)
        limitRate = try members.decodeIfPresent(Int64.self, forKey: .limitRate)
        schedule = try DownloadSchedule.parse(members.decodeIfPresent([String].self, forKey: .schedule) ?? [])
        caps = try DownloadCap.parse(members.decodeIfPresent([String].self, forKey: .caps) ?? [])
    }

    package func encode(to encoder: any Encoder) throws {
        var members = encoder.container(keyedBy: CodingKeys.self)
        try members.encode(maxActive, forKey: .maxActive)
        try members.encodeIfPresent(limitRate, forKey: .limitRate)
        try members.encodeIfPresent(schedule?.texts, forKey: .schedule)
        if !caps.isEmpty { try members.encode(caps.map(\.text), forKey: .caps) }
    }
}
