import CachePolicy
import HTTPModel

/// The segments of a DASH representation, as players request them.
package struct RepresentationSegments: SegmentSequence {
    private enum Source: Sendable {
        case template(AddressTemplate, AddressTemplate.Matcher?, SegmentTiming)
        case list([SegmentURLEntry], SegmentTiming, AddressIndex)
        /// The whole file, or the entries of its index.
        case file([SegmentIndexBox.Entry])
        case whole(Duration)
    }

    private let base: OriginURL
    private let source: Source
    private let timescale: Timescale
    private let initialization: InitializationSection?

    package var count: Int {
        switch source {
        case .template(_, _, let timing): timing.count
        case .list(let entries, let timing, _): min(entries.count, timing.count)
        case .file(let entries): entries.count
        case .whole: 1
        }
    }

    package subscript(position: Int) -> MediaSegment {
        switch source {
        case .template(let template, _, let timing):
            let (number, time, duration) = timing.segment(at: position)
            return segment(
                number, base.resolving(template.reference(number: number, time: time)),
                duration: timescale.duration(duration))
        case .list(let entries, let timing, _):
            let (number, _, duration) = timing.segment(at: position), entry = entries[position]
            return segment(number, url(of: entry), entry.mediaRange, duration: timescale.duration(duration))
        case .file(let entries):
            return segment(number(at: position), base, entries[position].range, duration: entries[position].duration)
        case .whole(let duration): return segment(1, base, duration: duration)
        }
    }

    package func number(at position: Int) -> Int64 {
        switch source {
        case .template(_, _, let timing), .list(_, let timing, _): timing.segment(at: position).number
        case .file, .whole: Int64(position) +| 1
        }
    }

    package func position(within duration: Duration) -> Int {
        switch source {
        case .template(_, _, let timing), .list(_, let timing, _):
            timing.position(within: timescale.ticks(duration), before: count)
        case .file(let entries): position(within: duration) { entries[$0].duration }
        case .whole(let whole): whole <= duration ? 0 : 1
        }
    }

    private func segment(_ number: Int64, _ url: OriginURL?, _ range: Range<Int64>? = nil, duration: Duration)
        -> MediaSegment
    {
        MediaSegment(
            number: number, url: url, range: range, duration: duration, keys: [], initialization: initialization)
    }

    private func url(of entry: SegmentURLEntry) -> OriginURL? {
        entry.media.map { base.resolving($0.reference) } ?? base
    }

    package func position(of url: OriginURL, at byte: Int64?) -> Int? {
        switch source {
        case .template(let template, let matcher, let timing):
            guard let values = matcher?.values(in: url) else { return nil }
            let position =
                values.number.flatMap(timing.position(number:)) ?? values.time.flatMap(timing.position(time:))
            guard let position else { return template.isVariable ? nil : timing.count > 0 ? 0 : nil }
            return self[position].url?.isEquivalent(to: url) == true ? position : nil
        case .list(let entries, let timing, let index):
            let found = index.position(of: url, at: byte) { self.url(of: entries[$0])?.isEquivalent(to: url) ?? false }
            return found.flatMap { $0 < min(entries.count, timing.count) ? $0 : nil }
        case .file(let entries):
            return base.isEquivalent(to: url) ? Self.position(of: byte, in: entries) : nil
        case .whole: return base.isEquivalent(to: url) ? 0 : nil
        }
    }

    package func laterDuration(of url: OriginURL) -> Duration? {
        guard case .template(_, let matcher, let timing) = source, count > 0, let values = matcher?.values(in: url)
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

    package var hosts: Set<String> {
        switch source {
        case .template, .whole, .file: Set(isEmpty ? [] : [self[0].url?.host ?? base.host])
        case .list(let entries, _, _): Set(entries.compactMap { url(of: $0)?.host })
        }
    }
}

extension RepresentationSegments {
    /// - Parameters:
    ///   - window: the part of the period's time that is available.
    ///   - index: the index of the file, if it has one; without it, the file is one segment.
    fileprivate init(
        _ representation: MPD.Representation, at base: OriginURL, _ window: SegmentWindow, index: SegmentIndexBox?
    ) throws(PlaylistError) {
        let information = representation.information
        self.base = base
        timescale = Timescale(rate: information.timescale)
        initialization = try information.initialization(of: representation, at: base)
        switch information.kind {
        case .base:
            let entries = index?.entries.filter { !$0.isIndex } ?? []
            source = entries.isEmpty ? .whole(window.end ?? .zero) : .file(entries)
        case .list:
            let entries = information.segmentURLs
            let timing = try information.timing(window, listed: Int64(entries.count))
            source = .list(
                entries, timing,
                AddressIndex(entries.lazy.map { ($0.media?.reference ?? "", $0.mediaRange) }, base: base))
        case .template:
            guard let media = information.media else { throw .malformed("a SegmentTemplate has no media") }
            let template = try AddressTemplate(media, id: representation.id, bandwidth: representation.bandwidth ?? 0)
            source = .template(template, template.matcher(at: base), try information.timing(window, listed: nil))
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

extension SegmentInformation {
    fileprivate func initialization(of representation: MPD.Representation, at base: OriginURL) throws(PlaylistError)
        -> InitializationSection?
    {
        if let text = initializationTemplate, kind == .template {
            let template = try AddressTemplate(text, id: representation.id, bandwidth: representation.bandwidth ?? 0)
            return InitializationSection(url: base.resolving(template.reference(number: 0, time: 0)), range: nil)
        }
        return initialization.map { InitializationSection(url: $0.url(at: base), range: $0.range) }
    }

    /// - Parameter listed: the number of segments, if they are listed.
    fileprivate func timing(_ window: SegmentWindow, listed: Int64?) throws(PlaylistError) -> SegmentTiming {
        let clock = Timescale(rate: timescale), first = startNumber ?? 1, end = window.end.map { clock.ticks($0) }
        if let timeline {
            let end = end.map { $0 +| presentationTimeOffset }
            return try SegmentTiming(timeline, number: first, until: end, isLive: window.isLive)
        }
        var timing = SegmentTiming()
        guard let duration else {
            // ISO/IEC 23009-1 §5.3.9.5.3: without any duration, there is one segment, as long as the period.
            try timing.append(
                time: presentationTimeOffset, duration: max(1, end ?? 1), count: listed ?? 1, number: first)
            return timing
        }
        let count = if let listed { listed } else { try count(until: end, duration, window) }
        let skipped = window.isLive && listed == nil ? skipped(clock.ticks(window.start), duration, of: count) : 0
        try timing.append(
            time: presentationTimeOffset +| duration *| skipped, duration: duration, count: count -| skipped,
            number: first +| skipped)
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
            representation.information.kind == .base
        else { return nil }
        guard let index = representation.information.index, let url = index.url(at: base) else { return nil }
        return (url, index.range)
    }
}
