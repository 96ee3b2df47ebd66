import HTTPModel

/// The times and numbers of a representation's segments (ISO/IEC 23009-1 §5.3.9.5.3, §5.3.9.6). In ticks.
///
/// Stored as runs of equal segments, so that a hundred thousand of them take no more memory than one. The runs of a
/// timeline are shared by all representations that inherit it; only an end that depends on the time is their own.
struct SegmentTiming: Sendable, Equatable {
    /// Consecutive segments of one duration.
    struct Run: Sendable, Equatable {
        let time: Int64
        let duration: Int64
        let count: Int
        /// The position of its first segment.
        let position: Int
        /// Counted from the first segment's, unless the timeline states it.
        fileprivate(set) var number: Int64
        fileprivate let isStated: Bool
        /// The duration of all segments before it.
        let elapsed: Int64

        var end: Int64 { time +| duration *| Int64(count) }
    }

    private var shared: [Run] = []
    private var last: Run?
    private(set) var count = 0
    /// The number of the first segment.
    private let first: Int64
    /// Whether only a duration says that there is a last segment, and it would be less than half as long as the others.
    var endsWithSurmised = false

    init(first: Int64) { self.first = first }

    init(first: Int64, sharing other: SegmentTiming) {
        (shared, count, self.first) = (other.shared, other.count, first)
    }

    private var runs: Int { shared.count + (last == nil ? 0 : 1) }

    private func run(_ place: Int) -> Run? {
        guard var run = place < shared.count ? shared[place] : last else { return nil }
        if !run.isStated { run.number = run.number +| first }
        return run
    }

    /// - Parameter number: the number that a timeline states.
    /// - Throws: if there would be more segments than `PlaylistLimits.segments`, or times beyond
    ///   `PlaylistLimits.ticks`.
    fileprivate mutating func append(time: Int64, duration: Int64, count added: Int64, number: (Int64, isStated: Bool))
        throws(PlaylistError)
    {
        if let run = try run(time, duration, added, number) {
            shared.append(run)
            count += run.count
        }
    }

    /// Appends the last run, without touching those that are shared.
    mutating func end(time: Int64, duration: Int64, count added: Int64, number: (Int64, isStated: Bool))
        throws(PlaylistError)
    {
        last = try run(time, duration, added, number)
        count += last?.count ?? 0
    }

    private func run(_ time: Int64, _ duration: Int64, _ added: Int64, _ number: (Int64, isStated: Bool))
        throws(PlaylistError) -> Run?
    {
        guard added > 0 else { return nil }
        guard let added = Int(exactly: added), added <= PlaylistLimits.segments - count else {
            throw .tooLarge("more than \(PlaylistLimits.segments) segments")
        }
        let elapsed = shared.last.map { $0.elapsed +| $0.duration *| Int64($0.count) } ?? 0
        let run = Run(
            time: time, duration: duration, count: added, position: count, number: number.0,
            isStated: number.isStated, elapsed: elapsed)
        guard time >= 0, run.end <= PlaylistLimits.ticks *| 2 else {
            throw .tooLarge("a segment's time is too great for players")
        }
        return run
    }

    /// - Parameter position: below `count`.
    func segment(at position: Int) -> (number: Int64, time: Int64, duration: Int64) {
        guard let run = lastRun({ $0.position <= position }) else { return (first, 0, 1) }
        let place = Int64(position - run.position)
        return (run.number +| place, run.time +| run.duration *| place, run.duration)
    }

    /// The first position from which to an end no more than this duration passes.
    /// - Parameter end: at most `count`.
    func position(within duration: Int64, before end: Int, _ budget: WorkBudget) throws(PlaylistError) -> Int {
        // The depth of both searches.
        try budget.take(128)
        guard let last = lastRun({ $0.position < end }) else { return 0 }
        let start = last.elapsed +| last.duration *| Int64(end - last.position) -| duration
        guard start > 0, let run = lastRun({ $0.elapsed < start }) else { return 0 }
        let steps = Self.steps(from: run.elapsed, to: start, run.duration)
        return min(end, run.position + Int(clamping: min(steps, Int64(run.count))))
    }

    /// Nil if no segment has it.
    func position(number: Int64) -> Int? {
        guard let run = lastRun({ $0.number <= number }) else { return nil }
        return position(in: run, steps: number -| run.number)
    }

    /// Nil if no segment begins then.
    func position(time: Int64) -> Int? {
        guard let run = lastRun({ $0.time <= time }) else { return nil }
        let (steps, rest) = (time -| run.time).quotientAndRemainder(dividingBy: max(1, run.duration))
        return rest == 0 ? position(in: run, steps: steps) : nil
    }

    private func position(in run: Run, steps: Int64) -> Int? {
        steps >= 0 && steps < Int64(run.count) ? run.position + Int(steps) : nil
    }

    /// The last run that meets a condition, which all runs before it must meet as well.
    private func lastRun(_ condition: (Run) -> Bool) -> Run? {
        var low = 0, high = runs
        while low < high {
            let middle = low + (high - low) / 2
            if run(middle).map(condition) ?? false { low = middle + 1 } else { high = middle }
        }
        return low > 0 ? run(low - 1) : nil
    }
}

extension SegmentTiming {
    /// A timeline as it is written: its runs, counted once for all representations that inherit it.
    struct Timeline: Sendable {
        private var timing = SegmentTiming(first: 0)
        /// An entry that continues to the end, with its time and number.
        private var open: (duration: Int64, time: Int64, number: (Int64, isStated: Bool))?
        private var failure: PlaylistError?
        /// The time of the first segment.
        let start: Int64

        init(_ entries: [TimelineEntry], _ budget: WorkBudget) throws(PlaylistError) {
            try budget.take(entries.count)
            start = entries.first?.time ?? 0
            var time: Int64 = 0, number: (Int64, isStated: Bool) = (0, false)
            for (place, entry) in entries.enumerated() {
                time = entry.time ?? time
                if let stated = entry.number { number = (stated, true) }
                let isLast = place + 1 == entries.count
                if entry.repeats < 0, isLast { open = (entry.duration, time, number) }
                let next = isLast ? nil : entries[place + 1].time
                let count =
                    entry.repeats >= 0
                    ? entry.repeats +| 1 : next.map { SegmentTiming.steps(from: time, to: $0, entry.duration) } ?? 1
                guard !isLast || open == nil else { return }
                do throws(PlaylistError) {
                    try timing.append(time: time, duration: entry.duration, count: count, number: number)
                } catch {
                    failure = error
                    return
                }
                time = time +| entry.duration *| count
                number.0 = number.0 +| count
            }
        }

        /// - Parameters:
        ///   - first: the number of the first segment.
        ///   - end: the end of the available time, in ticks of the media's own time; nil if unknown: an entry that
        ///     continues to the end is then one segment.
        ///   - isLive: whether the end is now, so that the segment that contains it is not available yet.
        func timing(number first: Int64, until end: Int64?, isLive: Bool) throws(PlaylistError) -> SegmentTiming {
            if let failure { throw failure }
            var timing = SegmentTiming(first: first, sharing: timing)
            guard let open else { return timing }
            let count = end.map { end in
                SegmentTiming.steps(from: open.time, to: isLive ? end -| (open.duration -| 1) : end, open.duration)
            }
            try timing.end(time: open.time, duration: open.duration, count: count ?? 1, number: open.number)
            return timing
        }
    }
}

extension SegmentTiming {
    /// Rounded up: the last segment may be shorter.
    static func steps(from start: Int64, to end: Int64, _ duration: Int64) -> Int64 {
        // no trap: at least 1
        max(0, (end -| start +| (duration -| 1)) / max(1, duration))
    }
}

/// A clock with this many ticks per second.
struct Timescale: Sendable {
    /// Ticks per second, above 0.
    let rate: Int64

    /// - Parameter duration: clamped to `PlaylistLimits.seconds`.
    /// - Returns: the ticks, rounded to the nearest; at most 2⁶².
    func ticks(_ duration: Duration) -> Int64 {
        let held = min(max(duration, .zero), .seconds(PlaylistLimits.seconds))
        // At most 2⁹⁰ times 2³².
        let ticks = (held.attoseconds * Int128(rate) + Self.attoseconds / 2) / Self.attoseconds
        return Int64(clamping: min(ticks, Int128(1) << 62))
    }

    /// - Parameter ticks: at most 2⁶².
    /// - Returns: at most `PlaylistLimits.seconds`: those of all segments are added up.
    func duration(_ ticks: Int64) -> Duration {
        // At most 2⁶² times 2⁶⁰.
        let duration = Duration(attoseconds: Int128(ticks) * Self.attoseconds / Int128(rate))
        return min(duration, .seconds(PlaylistLimits.seconds))
    }

    /// Attoseconds per second.
    private static let attoseconds: Int128 = 1_000_000_000_000_000_000
}
