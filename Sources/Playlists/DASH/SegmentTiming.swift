import HTTPModel

/// The times and numbers of a representation's segments (ISO/IEC 23009-1 §5.3.9.5.3, §5.3.9.6). In ticks.
///
/// Stored as runs of equal segments, so that a hundred thousand of them take no more memory than one.
struct SegmentTiming: Sendable, Equatable {
    /// Consecutive segments of one duration.
    struct Run: Sendable, Equatable {
        let time: Int64
        let duration: Int64
        let count: Int
        /// The position of its first segment.
        let position: Int
        let number: Int64
        /// The duration of all segments before it.
        let elapsed: Int64

        var end: Int64 { time +| duration *| Int64(count) }
    }

    private(set) var runs: [Run] = []
    private(set) var count = 0

    /// - Throws: if there would be more segments than `PlaylistLimits.segments`, or times beyond
    ///   `PlaylistLimits.ticks`.
    mutating func append(time: Int64, duration: Int64, count added: Int64, number: Int64) throws(PlaylistError) {
        guard added > 0 else { return }
        guard let added = Int(exactly: added), added <= PlaylistLimits.segments - count else {
            throw .tooLarge("more than \(PlaylistLimits.segments) segments")
        }
        let elapsed = runs.last.map { $0.elapsed +| $0.duration *| Int64($0.count) } ?? 0
        let run = Run(
            time: time, duration: duration, count: added, position: count, number: number, elapsed: elapsed)
        guard time >= 0, run.end <= PlaylistLimits.ticks *| 2 else {
            throw .tooLarge("a segment's time is too great for players")
        }
        runs.append(run)
        count += added
    }

    /// - Parameter position: below `count`.
    func segment(at position: Int) -> (number: Int64, time: Int64, duration: Int64) {
        let run = runs[lastRun { $0.position <= position } ?? 0]
        let place = Int64(position - run.position)
        return (run.number +| place, run.time +| run.duration *| place, run.duration)
    }

    /// The first position from which to an end no more than this duration passes.
    /// - Parameter end: at most `count`.
    func position(within duration: Int64, before end: Int) -> Int {
        guard let last = lastRun({ $0.position < end }) else { return 0 }
        let start = runs[last].elapsed +| runs[last].duration *| Int64(end - runs[last].position) -| duration
        guard start > 0, let place = lastRun({ $0.elapsed < start }) else { return 0 }
        let run = runs[place], steps = Self.steps(from: run.elapsed, to: start, run.duration)
        return min(end, run.position + Int(clamping: min(steps, Int64(run.count))))
    }

    /// Nil if no segment has it.
    func position(number: Int64) -> Int? {
        guard let place = lastRun({ $0.number <= number }) else { return nil }
        return position(in: runs[place], steps: number -| runs[place].number)
    }

    /// Nil if no segment begins then.
    func position(time: Int64) -> Int? {
        guard let place = lastRun({ $0.time <= time }) else { return nil }
        let run = runs[place], (steps, rest) = (time -| run.time).quotientAndRemainder(dividingBy: max(1, run.duration))
        return rest == 0 ? position(in: run, steps: steps) : nil
    }

    private func position(in run: Run, steps: Int64) -> Int? {
        steps >= 0 && steps < Int64(run.count) ? run.position + Int(steps) : nil
    }

    /// The last run that meets a condition, which all runs before it must meet as well.
    private func lastRun(_ condition: (Run) -> Bool) -> Int? {
        var low = 0, high = runs.count
        while low < high {
            let middle = low + (high - low) / 2
            WorkSteps.take()
            if condition(runs[middle]) { low = middle + 1 } else { high = middle }
        }
        return low > 0 ? low - 1 : nil
    }
}

extension SegmentTiming {
    /// Expands a timeline.
    /// - Parameters:
    ///   - number: the number of the first segment.
    ///   - end: the end of the available time, in ticks of the media's own time; nil if unknown: an entry that
    ///     continues to the end is then one segment.
    ///   - isLive: whether the end is now, so that the segment that contains it is not available yet.
    init(
        _ timeline: [TimelineEntry], number first: Int64, until end: Int64?, isLive: Bool
    ) throws(PlaylistError) {
        var time: Int64 = 0, number = first
        for (place, entry) in timeline.enumerated() {
            time = entry.time ?? time
            number = entry.number ?? number
            let next = place + 1 < timeline.count ? timeline[place + 1].time : nil
            let count = entry.repeats < 0 ? Self.open(entry, from: time, next, end, isLive) : entry.repeats +| 1
            try append(time: time, duration: entry.duration, count: count, number: number)
            time = time +| entry.duration *| count
            number = number +| count
        }
    }

    /// The number of segments of an entry that continues to the next one, or to the end.
    private static func open(
        _ entry: TimelineEntry, from time: Int64, _ next: Int64?, _ end: Int64?, _ isLive: Bool
    ) -> Int64 {
        if let next { return steps(from: time, to: next, entry.duration) }
        guard let end else { return 1 }
        return steps(from: time, to: isLive ? end -| (entry.duration -| 1) : end, entry.duration)
    }

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
    func duration(_ ticks: Int64) -> Duration {
        // At most 2⁶² times 2⁶⁰.
        Duration(attoseconds: Int128(ticks) * Self.attoseconds / Int128(rate))
    }

    /// Attoseconds per second.
    private static let attoseconds: Int128 = 1_000_000_000_000_000_000
}
