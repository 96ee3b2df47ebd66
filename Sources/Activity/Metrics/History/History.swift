// no traps: times are not negative here, spans are constants, and `fits` bounds stored periods

/// Counts over time, in rings of fixed size: one for each `HistorySpan`, with a slot for each period.
///
/// A period without a slot was not counted, because no process ran: it is a gap, not a zero. The place of a period
/// follows from its start, so that a newer period replaces the oldest. If the clock is set back, counts are added to
/// the periods that it shows again, and periods beyond it are left out of reports until it reaches them.
package struct History: Sendable {
    /// Slots of all rings, by their numbers.
    private var ring: [HistoryPeriod?]
    private var changed: Set<Int> = []
    private var last = HistoryCounts()

    /// The number of slots of all rings together.
    package static let slotCount = HistorySpan.allCases.reduce(0) { $0 + $1.periodCount }

    /// The first slot of a ring.
    private static func firstSlot(of span: HistorySpan) -> Int {
        HistorySpan.allCases.prefix { $0 != span }.reduce(0) { $0 + $1.periodCount }
    }

    private static func slot(of start: Int64, in span: HistorySpan) -> Int {
        firstSlot(of: span) + Int(start / span.periodSeconds % Int64(span.periodCount))
    }

    /// - Parameter slots: periods by their slots, as stored; those that cannot be in their slot are left out.
    package init(_ slots: [Int: HistoryPeriod] = [:]) {
        ring = Array(repeating: nil, count: Self.slotCount)
        for (slot, period) in slots where Self.fits(period, slot) { ring[slot] = period }
    }

    /// Whether a stored period can be in this slot.
    package static func fits(_ period: HistoryPeriod, _ slot: Int) -> Bool {
        guard let span = HistorySpan.allCases.last(where: { firstSlot(of: $0) <= slot }), slot < slotCount else {
            return false
        }
        return period.start >= 0 && period.start % span.periodSeconds == 0
            && self.slot(of: period.start, in: span) == slot
            && (0...span.periodSeconds * 1000).contains(period.milliseconds)
    }

    /// Adds what was counted since the last sample to the period, of each span, in the middle of that time: samples are
    /// taken where periods end, and may be taken a little later.
    package mutating func add(_ sample: HistorySample) {
        let news = sample.totals - last
        last = sample.totals
        let elapsed = max(0, sample.elapsed)
        for span in HistorySpan.allCases {
            let half = min(elapsed, span.periodSeconds * 1000) / 2000
            let start = span.start(of: max(0, sample.time) - half)
            let slot = Self.slot(of: start, in: span)
            var period = ring[slot].flatMap { $0.start == start ? $0 : nil } ?? HistoryPeriod(start: start)
            period.milliseconds = min(span.periodSeconds * 1000, period.milliseconds + min(elapsed, 1 << 40))
            period.counts = period.counts + news
            (period.size, period.limit) = (sample.size, sample.limit)
            ring[slot] = period
            changed.insert(slot)
        }
    }

    /// The counted periods of a span up to a time, the oldest first.
    /// - Parameter now: seconds since 1970.
    package func periods(of span: HistorySpan, now: Int64) -> [HistoryPeriod] {
        let last = span.start(of: now), length = span.periodSeconds * Int64(span.periodCount)
        let first = Self.firstSlot(of: span)
        return ring[first..<first + span.periodCount].compactMap(\.self)
            .filter { $0.start <= last && $0.start > last - length }.sorted { $0.start < $1.start }
    }

    /// The slots that have changed since the last call.
    package mutating func takeChanged() -> [Int: HistoryPeriod] {
        defer { changed = [] }
        return Dictionary(uniqueKeysWithValues: changed.compactMap { slot in ring[slot].map { (slot, $0) } })
    }

    /// All periods, by their slots.
    package var slots: [Int: HistoryPeriod] {
        Dictionary(uniqueKeysWithValues: ring.enumerated().compactMap { slot, period in period.map { (slot, $0) } })
    }

    /// Slots that could not be stored count as changed again.
    package mutating func unsaved(_ slots: some Sequence<Int>) { changed.formUnion(slots) }
}
