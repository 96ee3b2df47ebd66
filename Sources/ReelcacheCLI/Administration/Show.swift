import Administration
import ArgumentParser
import CachePolicy
import ControlAPI
import DiskCache
import Foundation
import HTTPModel
import Reelcache

struct Show: PrintingCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show everything known about a cached resource.",
        discussion: """
            Prints its size, type, freshness and hits, and which parts of it are cached; of an HLS or DASH stream, its renditions.

              reelcache show https://example.org/film.mp4
              reelcache show https://example.org/film.m3u8 --segments
            """)

    @Argument(help: "The media URL, as its origin has it or as players open it.", completion: .known(.urls))
    var url: String
    @Flag(help: "List the segments of a stream, and which of them are cached.")
    var segments = false
    @OptionGroup var printing: PrintingOptions

    private static let labelWidth = 12
    private static let maxSpans = 10

    func run() throws {
        let configuration = try printing.cache.configuration
        let (detail, rule) = try configuration.withProxy { proxy in
            let url = try proxy.url(url)
            return (try proxy.resource(url, listsSegments: segments), try configuration.rule(of: url))
        }
        guard !printing.json else { return print(try printing.secret.json(detail, configuration)) }
        let rows =
            Self.rows(detail, rule, now: Int64(time(nil)))
            + (detail.resource.parts == nil && detail.resource.presentation == nil
                ? Self.coverage(detail, width: Terminal.width.map { $0 - Self.labelWidth } ?? 64)
                : PresentationText.rows(detail.resource))
        for (label, value) in rows {
            print(try printing.secret.shown(label.padded(to: Self.labelWidth) + value, configuration))
        }
    }

    private static func rows(_ detail: ResourceDetail, _ rule: ResolvedRule, now: Int64) -> [(String, String)] {
        let resource = detail.resource
        let freshness = Freshness.of(
            detail.freshnessFields, ResponseTimes(validatedAt: detail.validatedAt, initialAge: detail.initialAge),
            ttl: rule.ttl, isListing: resource.contentType.map(Listing.isListing(type:)) ?? false, terms: rule.terms,
            now: now)
        let rows: [(String, String?)] = [
            ("url", Terminal.shown(resource.urlText)),
            ("final url", detail.finalURL == resource.urlText ? nil : Terminal.shown(detail.finalURL)),
            ("size", size(resource)),
            ("title", resource.presentation?.title),
            ("type", resource.contentType),
            ("part of", resource.partOf.map(Terminal.shown)),
            ("etag", detail.etag),
            ("modified", detail.lastModified),
            ("freshness", freshness.text),
            ("hits", resource.hits.grouped),
            ("last read", TimeSpan.ago(resource.lastAccess, now: now)),
            ("stored", TimeSpan.ago(resource.storedAt, now: now)),
            ("pinned", resource.isPinned ? "yes" : "no"),
        ]
        return rows.compactMap { label, value in value.map { (label, $0.printable) } }
    }

    private static func size(_ resource: CachedResource) -> String {
        if resource.isComplete { return "\(resource.length.size) (\(resource.length.of("byte"))), complete" }
        let percent =
            resource.length > 0 ? Int(saturating: Double(resource.cachedBytes) / Double(resource.length) * 100) : 0
        return "\(resource.cachedBytes.size) of \(resource.length.size) (\(resource.length.of("byte"))), \(percent) %"
    }

    private static func coverage(_ detail: ResourceDetail, width: Int) -> [(String, String)] {
        let bar = CoverageBar(
            present: detail.present.map(\.range), length: detail.resource.length, width: max(8, width))
        let rows = [("coverage", bar.text(isUnicode: Terminal.isUnicode))]
        guard !detail.missing.isEmpty else { return rows }
        return rows + [("missing", "\(detail.missing.byteCount.size): \(detail.missing.text(atMost: maxSpans))")]
    }
}
