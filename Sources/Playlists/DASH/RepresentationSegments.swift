import CachePolicy
import HTTPModel

/// The segments of a DASH representation, as players request them.
package struct RepresentationSegments: SegmentSequence {
    private enum Source: Sendable {
        case template(AddressTemplate, SegmentTiming)
        case list([SegmentURLEntry], SegmentTiming)
        /// The whole file, or the entries of its index.
        case file([SegmentIndexBox.Entry])
        case whole(Duration)
    }

    private let base: OriginURL
    private let source: Source
    private let timescale: Timescale
    private let representation: MPD.Representation

    package var count: Int {
        switch source {
        case .template(_, let timing): timing.count
        case .list(let entries, let timing): min(entries.count, timing.count)
        case .file(let entries): entries.count
        case .whole: 1
        }
    }

    package subscript(position: Int) -> MediaSegment {
        switch source {
        case .template(_, let timing):
            let (number, _, duration) = timing.segment(at: position)
            var segment = segment(number, url(at: position), duration: timescale.duration(duration))
            segment.isSurmised = timing.endsWithSurmised && position == timing.count - 1
            return segment
        case .list(let entries, let timing):
            let (number, _, duration) = timing.segment(at: position), entry = entries[position]
            return segment(number, url(of: entry), entry.mediaRange, duration: timescale.duration(duration))
        case .file(let entries):
            return segment(number(at: position), base, entries[position].range, duration: entries[position].duration)
        case .whole(let duration): return segment(1, base, duration: duration)
        }
    }

    package func number(at position: Int) -> Int64 {
        switch source {
        case .template(_, let timing), .list(_, let timing): timing.segment(at: position).number
        case .file, .whole: Int64(position) +| 1
        }
    }

    package func position(within duration: Duration, _ budget: WorkBudget) throws(PlaylistError) -> Int {
        switch source {
        case .template(_, let timing), .list(_, let timing):
            try timing.position(within: timescale.ticks(duration), before: count, budget)
        case .file(let entries): try position(within: duration, budget) { entries[$0].duration }
        case .whole(let whole): whole <= duration ? 0 : 1
        }
    }

    private func segment(_ number: Int64, _ url: OriginURL?, _ range: Range<Int64>? = nil, duration: Duration)
        -> MediaSegment
    {
        MediaSegment(
            number: number, url: url, range: range, duration: duration, keys: [], initialization: initialization)
    }

    /// The initialization section of all segments; nil if the only one is the file that has it.
    package var initialization: InitializationSection? {
        let section = try? representation.initialization(at: base)
        if case .whole = source, section?.address?.url?.isEquivalent(to: base) == true { return nil }
        return section
    }

    private func url(at position: Int) -> OriginURL? {
        switch source {
        case .template(let template, let timing):
            let (number, time, _) = timing.segment(at: position)
            return base.resolving(
                template.reference(
                    number: number, time: time, id: representation.id, bandwidth: representation.bandwidth))
        case .list(let entries, _): return url(of: entries[position])
        case .file, .whole: return base
        }
    }

    private func url(of entry: SegmentURLEntry) -> OriginURL? {
        entry.media.map { base.resolving($0.reference) } ?? base
    }

    package func position(of url: OriginURL, at byte: Int64?, within budget: WorkBudget) throws(PlaylistError) -> Int? {
        switch source {
        case .template(let template, let timing):
            try spend(template, budget)
            guard
                let values = template.matcher(at: base, id: representation.id, bandwidth: representation.bandwidth)?
                    .values(in: url)
            else { return nil }
            let position =
                values.number.flatMap(timing.position(number:)) ?? values.time.flatMap(timing.position(time:))
            guard let position else { return template.isVariable ? nil : timing.count > 0 ? 0 : nil }
            return self.url(at: position)?.isEquivalent(to: url) == true ? position : nil
        case .list:
            for position in 0..<count where try isListed(position, url, byte, budget) { return position }
            return nil
        case .file(let entries):
            return base.isEquivalent(to: url) ? Self.position(of: byte, in: entries) : nil
        case .whole: return base.isEquivalent(to: url) ? 0 : nil
        }
    }

    /// The same for what an index has found.
    package func position(
        of url: OriginURL, at byte: Int64?, _ hint: RepresentationSegments.Index.Candidate.Hint,
        within budget: WorkBudget
    ) throws(PlaylistError) -> Int? {
        let found: Int?
        switch (source, hint) {
        case (_, .initialization): return nil
        case (.template(let template, let timing), .number(let number)):
            try spend(template, budget)
            found = timing.position(number: number)
        case (.template(let template, let timing), .time(let time)):
            try spend(template, budget)
            found = timing.position(time: time)
        case (.list, .position(let position)): return try isListed(position, url, byte, budget) ? position : nil
        default: return try position(of: url, at: byte, within: budget)
        }
        return found.flatMap { self.url(at: $0)?.isEquivalent(to: url) == true ? $0 : nil }
    }

    /// What making and comparing one address costs, and finding its number among the runs.
    private func spend(_ template: AddressTemplate, _ budget: WorkBudget) throws(PlaylistError) {
        try budget.take(template.length &+ base.pathAndQuery.utf8.count &+ 64)
    }

    private func isListed(_ position: Int, _ url: OriginURL, _ byte: Int64?, _ budget: WorkBudget)
        throws(PlaylistError) -> Bool
    {
        guard case .list(let entries, _) = source, position < count else { return false }
        try budget.take(base.pathAndQuery.utf8.count &+ (entries[position].media?.value.utf8.count ?? 0))
        guard entries[position].mediaRange?.contains(byte ?? 0) ?? true else { return false }
        return self.url(at: position)?.isEquivalent(to: url) ?? false
    }

    package func laterDuration(of url: OriginURL) -> Duration? {
        guard case .template(let template, let timing) = source, count > 0,
            let values = template.matcher(at: base, id: representation.id, bandwidth: representation.bandwidth)?.values(
                in: url)
        else { return nil }
        let last = timing.segment(at: count - 1)
        guard values.number ?? .min > last.number || values.time ?? .min > last.time else { return nil }
        return timescale.duration(last.duration)
    }

    /// - Parameter entries: in the order of the file, as an index lists them.
    private static func position(of byte: Int64?, in entries: [SegmentIndexBox.Entry]) -> Int? {
        guard let byte else { return entries.isEmpty ? nil : 0 }
        var low = 0, high = entries.count
        while low < high {
            let middle = low + (high - low) / 2
            if entries[middle].range.upperBound <= byte { low = middle + 1 } else { high = middle }
        }
        return low < entries.count && entries[low].range.contains(byte) ? low : nil
    }
}

extension RepresentationSegments {
    /// - Parameters:
    ///   - window: the part of the period's time that is available.
    ///   - index: the index of the file, if it has one; without it, the file is one segment.
    fileprivate init(
        _ representation: MPD.Representation, at base: OriginURL, _ window: SegmentWindow, index: SegmentIndexBox?
    ) throws(PlaylistError) {
        let information = representation.information.value
        self.base = base
        timescale = Timescale(rate: information.timescale)
        self.representation = representation
        if information.kind == .template { _ = try information.initializationTemplate?.get() }
        switch information.kind {
        case .base:
            let entries = index?.media ?? []
            source = entries.isEmpty ? .whole(window.end ?? .zero) : .file(entries)
        case .list:
            let entries = information.segmentURLs
            source = .list(entries, try information.timing(window, listed: Int64(entries.count)))
        case .template:
            guard let media = information.media else { throw .malformed("a SegmentTemplate has no media") }
            source = .template(try media.get(), try information.timing(window, listed: nil))
        }
    }
}

/// The part of a period's time that has segments.
struct SegmentWindow: Sendable {
    /// The time since the period's start. Live: the earliest time at which segments are still available.
    var start: Duration = .zero
    /// Nil if unknown.
    var end: Duration?
    /// Whether only segments that have ended by then count; otherwise the one in which it ends counts, too.
    var isLive = false
}

extension MPD.Representation {
    func initialization(at base: OriginURL) throws(PlaylistError) -> InitializationSection? {
        let information = information.value
        if let template = information.initializationTemplate, information.kind == .template {
            let reference = try template.get().reference(number: 0, time: 0, id: id, bandwidth: bandwidth)
            return InitializationSection(address: WrittenAddress(reference: reference, base: base), range: nil)
        }
        return information.initialization.map {
            InitializationSection(address: $0.address(at: base), range: $0.range)
        }
    }
}

extension SegmentInformation {
    /// - Parameter listed: the number of segments, if they are listed.
    fileprivate func timing(_ window: SegmentWindow, listed: Int64?) throws(PlaylistError) -> SegmentTiming {
        let clock = Timescale(rate: timescale), first = startNumber ?? 1, end = window.end.map { clock.ticks($0) }
        if let timeline {
            let end = end.map { $0 +| presentationTimeOffset }
            return try timeline.timing(number: first, until: end, isLive: window.isLive)
        }
        var timing = SegmentTiming(first: 0)
        guard let duration else {
            // ISO/IEC 23009-1 §5.3.9.5.3: without any duration, there is one segment, as long as the period.
            try timing.end(
                time: presentationTimeOffset, duration: max(1, end ?? 1), count: listed ?? 1, number: (first, true))
            return timing
        }
        let count = if let listed { listed } else { try count(until: end, duration, window) }
        let skipped = window.isLive && listed == nil ? skipped(clock.ticks(window.start), duration, of: count) : 0
        try timing.end(
            time: presentationTimeOffset +| duration *| skipped, duration: duration, count: count -| skipped,
            number: (first +| skipped, true))
        if let end, listed == nil, endNumber == nil, !window.isLive {
            // no trap: at least 1
            timing.endsWithSurmised = timing.count > 1 && (1...max(1, duration / 2)).contains(end % max(1, duration))
        }
        return timing
    }

    /// The number of segments from the period's start to the end of the window.
    private func count(until end: Int64?, _ duration: Int64, _ window: SegmentWindow) throws(PlaylistError) -> Int64 {
        guard let end else { throw .malformed("the MPD does not state how many segments there are") }
        // no trap: at least 1
        let count = window.isLive ? end / max(1, duration) : SegmentTiming.steps(from: 0, to: end, duration)
        guard let endNumber else { return count }
        return min(count, max(0, endNumber -| (startNumber ?? 1) +| 1))
    }

    /// The segments that have left the window. Of a stream without a window, only the last ones are listed.
    private func skipped(_ start: Int64, _ duration: Int64, of count: Int64) -> Int64 {
        // no trap: at least 1
        min(count, max(start / max(1, duration), count -| Int64(PlaylistLimits.segments)))
    }
}

extension MPD {
    /// The segments of a representation, within its period.
    /// - Parameters:
    ///   - id: an identifier of this MPD.
    ///   - now: the time since 1970, UTC; for a dynamic MPD, it determines which segments are available. Not needed
    ///     if a timeline lists them.
    ///   - index: the file's index, if `segmentIndex(of:)` names one; without it, the file is one segment.
    /// - Throws: if the MPD does not determine the segments, or there are more than `PlaylistLimits.segments`.
    package func segments(of id: RepresentationID, at now: Duration? = nil, index: SegmentIndexBox? = nil)
        throws(PlaylistError) -> RepresentationSegments
    {
        guard let representation = self[id], let base = representation.baseURLs.first else {
            throw .malformed("the representation has no address that can be fetched")
        }
        return try RepresentationSegments(
            representation, at: base, window(of: periods[id.period], at: now), index: index)
    }

    /// ISO/IEC 23009-1 §5.3.9.5.3: a segment is available from the time at which its end would be played live until
    /// it leaves the buffer.
    private func window(of period: Period, at now: Duration?) -> SegmentWindow {
        guard isDynamic, let availabilityStartTime, let now else { return SegmentWindow(end: period.duration) }
        let elapsed = max(.zero, now - availabilityStartTime - (period.start ?? .zero))
        if let duration = period.duration, elapsed >= duration { return SegmentWindow(end: duration) }
        return SegmentWindow(
            start: timeShiftBufferDepth.map { max(.zero, elapsed - $0) } ?? .zero, end: elapsed, isLive: true)
    }

    /// The location of the index of a representation's file, if it is a single file (`SegmentBase@indexRange`); nil
    /// for others.
    package func segmentIndex(of id: RepresentationID) -> (url: OriginURL, range: Range<Int64>?)? {
        guard let representation = self[id], let base = representation.baseURLs.first,
            representation.information.value.kind == .base
        else { return nil }
        guard let index = representation.information.value.index, let url = index.address(at: base).url else {
            return nil
        }
        return (url, index.range)
    }
}
