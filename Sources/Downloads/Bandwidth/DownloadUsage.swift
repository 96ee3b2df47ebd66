import CachePolicy
import HTTPModel

/// How many bytes downloads have fetched from origins, by day of local time and by feed. A value, without a clock.
struct DownloadUsage {
    struct Row: Hashable {
        /// Days since 1970-01-01.
        let day: Int64
        /// The URL of the feed; empty for downloads without one.
        let feed: String
    }

    /// Thirteen months, in days.
    static let daysKept: Int64 = 400
    /// The most rows: of more, the oldest days are forgotten.
    static let mostRows = 20_000

    private(set) var rows: [Row: Int64] = [:]
    /// Rows that differ from the database.
    private(set) var unsaved: Set<Row> = []
    private var tally = Tally()
    /// The first day that is kept, and the day on which that was decided.
    private var kept: (first: Int64, decided: Int64)?

    /// Sums of the current day and month.
    private struct Tally {
        var day: Int64?
        var all = Sums()
        var feeds: [String: Sums] = [:]
    }

    private struct Sums {
        var day: Int64 = 0
        var month: Int64 = 0

        mutating func add(_ bytes: Int64, isToday: Bool) {
            if isToday { day +|= bytes }
            month +|= bytes
        }
    }

    init(_ rows: [Row: Int64] = [:]) { self.rows = rows }

    /// Counts bytes that a download has fetched.
    /// - Parameters:
    ///   - feed: the URL of its feed; nil if it has none.
    ///   - day: today.
    mutating func count(_ bytes: Int64, feed: String?, day: Int64) {
        guard bytes > 0 else { return }
        turn(to: day)
        let row = Row(day: day, feed: feed ?? "")
        rows[row, default: 0] +|= bytes
        unsaved.insert(row)
        tally.all.add(bytes, isToday: true)
        if let feed { tally.feeds[feed, default: Sums()].add(bytes, isToday: true) }
    }

    /// The bytes fetched so far in the day or month of `day`.
    /// - Parameter feed: only of this one; nil for all downloads.
    mutating func bytes(in period: DownloadCap.Period, of day: Int64, feed: String? = nil) -> Int64 {
        turn(to: day)
        let sums = feed.map { tally.feeds[$0] ?? Sums() } ?? tally.all
        return period == .day ? sums.day : sums.month
    }

    private mutating func turn(to day: Int64) {
        guard tally.day != day else { return }
        tally = Tally(day: day)
        let month = DownloadCap.Period.month.days(around: day)
        // A day in the future, which a wrong clock has left, does not count yet.
        for (row, bytes) in rows where month.contains(row.day) && row.day <= day {
            tally.all.add(bytes, isToday: row.day == day)
            if !row.feed.isEmpty { tally.feeds[row.feed, default: Sums()].add(bytes, isToday: row.day == day) }
        }
    }

    // MARK: Saving

    var unsavedRows: [Row: Int64] {
        Dictionary(uniqueKeysWithValues: unsaved.compactMap { row in rows[row].map { (row, $0) } })
    }

    /// Notes that the rows are in the database as they are now.
    mutating func noteSaved() { unsaved = [] }

    /// Once a day, forgets days that are too long ago, and the oldest ones of too many.
    /// - Returns: the first day that is kept.
    mutating func forgetOld(today: Int64) -> Int64 {
        if let kept, kept.decided == today { return kept.first }
        var first = today -| Self.daysKept
        if rows.count > Self.mostRows {
            first = max(first, rows.keys.map(\.day).sorted(by: >)[Self.mostRows])
        }
        rows = rows.filter { $0.key.day >= first }
        unsaved = unsaved.filter { $0.day >= first }
        kept = (first, today)
        return first
    }
}
