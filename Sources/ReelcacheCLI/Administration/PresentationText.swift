import DiskCache
import HTTPModel

/// A presentation as lines of text.
enum PresentationText {
    /// For a listing: its title, and how many parts it has; empty for other resources.
    static func flags(_ resource: CachedResource) -> [String] {
        guard let parts = resource.parts else { return [] }
        guard let presentation = resource.presentation else { return [parts.of("part")] }
        let title = presentation.title.map { [String($0.printable.prefix(longestTitle))] } ?? []
        return title + [presentation.renditions.count.of("rendition")]
    }

    private static let longestTitle = 40

    /// For a listing: how much of it is cached; nil if that is not known.
    static func share(_ resource: CachedResource) -> String? {
        resource.presentation.map { "\($0.cachedSegments.grouped)/\($0.segments.of("segment"))" }
    }

    private static func counts(_ presentation: CachedPresentation) -> String {
        let (cached, all) = (presentation.cachedSegments, presentation.segments)
        return "\(cached.grouped) of \(all.of("segment")) of \(presentation.renditions.count.of("rendition"))"
    }

    /// Labels with their values, for everything known about it.
    static func rows(_ resource: CachedResource) -> [(String, String)] {
        guard let presentation = resource.presentation else {
            return [("parts", "\(resource.parts ?? 0), but the playlist is not cached")]
        }
        let offline = presentation.isPlayable ? "plays without its origin" : "does not play without its origin"
        return [("segments", "\(counts(presentation)); \(offline)")]
            + presentation.renditions.flatMap(rows)
    }

    private static func rows(_ rendition: CachedPresentation.Rendition) -> [(String, String)] {
        var words = [rendition.name, state(rendition), rendition.cachedBytes.size]
        if rendition.isEncrypted { words.append("encrypted") }
        return [("rendition", words.joined(separator: ", ").printable)]
            + (rendition.segmentList ?? []).map { ("", row($0)) }
    }

    private static func state(_ rendition: CachedPresentation.Rendition) -> String {
        if rendition.isComplete { return "complete (\(rendition.segments.of("segment")))" }
        guard rendition.segments > 0 else { return "its playlist is not cached" }
        return "\(rendition.cachedSegments.grouped) of \(rendition.segments.of("segment"))"
    }

    private static func row(_ segment: SegmentReport) -> String {
        let state = segment.isCached ? "cached" : segment.cached > 0 ? "in part" : "missing"
        let span = segment.range.map { " bytes \($0.first)-\($0.last)" } ?? ""
        return "\(segment.number) \(state) \(segment.cached.size) \(Terminal.shown(segment.url))\(span)"
    }
}
