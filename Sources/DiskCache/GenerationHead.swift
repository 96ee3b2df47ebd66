import CachePolicy
import HTTPModel

/// What is known of a generation besides its bytes. Another one takes its place when the origin says that the
/// generation still holds.
package final class GenerationHead: Sendable, Equatable {
    /// The status that a plain GET answers with: 200, or the origin's own where this is its error page.
    package let status: Int
    /// The origin's header fields worth keeping.
    package let fields: HeaderFields
    /// The request fields by which the origin chose it.
    package let variant: Variant
    /// Where the bytes came from, after redirects.
    package let finalURL: String
    /// Whether they came from a public address. What did not is shown to no page of another site.
    package let isPublic: Bool
    /// Seconds since 1970.
    package let storedAt: Int64
    /// From when its age counts.
    package let times: ResponseTimes
    /// Whether it is a playlist or a feed, whatever its origin calls it.
    package let isListing: Bool
    /// Whether its origin calls it a playlist.
    package let isCertainPlaylist: Bool
    /// Of a playlist that goes on: for how long it stands for its stream. Known to this process alone, and no part of
    /// what is compared and saved.
    package let live: LiveTiming?

    /// `fields` as they go out, each line ended by CRLF; those that speak for the origin as a site are apart.
    package let fieldBytes: [UInt8]
    package let siteBytes: [UInt8]
    /// What a browser can do with it.
    package let safety: ContentSafety
    /// Whether `Date` is among them.
    package let hasDate: Bool
    /// As it was when its age began to count: what is reckoned from its fields is reckoned once.
    private let freshnessAtFirst: Freshness
    package let validators: RepresentationValidators
    package let cacheControl: CacheControl
    /// The value for `If-Range` by which a gap of this very generation is asked for.
    package let rangeCondition: String?

    /// - Parameters:
    ///   - times: nil where it was new when it was stored.
    ///   - isListing: whether it is one although its fields do not say so.
    package init(
        status: Int, fields: HeaderFields, variant: Variant = Variant(), finalURL: String, isPublic: Bool = false,
        storedAt: Int64,
        times: ResponseTimes? = nil, isListing: Bool = false, live: LiveTiming? = nil
    ) {
        self.status = status
        self.fields = fields
        self.variant = variant
        self.finalURL = finalURL
        self.isPublic = isPublic
        self.storedAt = storedAt
        self.times = times ?? ResponseTimes(validatedAt: storedAt)
        fieldBytes = Self.rendered(fields.lines.filter { !SiteFields.isOfOrigin($0.name) })
        siteBytes = Self.rendered(fields.lines.filter { SiteFields.isOfOrigin($0.name) })
        safety = ContentSafety(fields)
        validators = RepresentationValidators(
            etag: fields["ETag"].flatMap { EntityTag(parsing: $0) },
            lastModified: fields["Last-Modified"].flatMap { HTTPDate.parse($0) })
        cacheControl = CacheControl(parsing: fields.combined("Cache-Control"))
        rangeCondition = Combining.condition(for: fields)
        hasDate = fields["Date"] != nil
        self.isListing = isListing || Listing.isListing(fields)
        isCertainPlaylist = fields["Content-Type"].map { PlaylistKind(mediaType: $0) != nil } ?? false
        self.live = live
        freshnessAtFirst = .of(
            fields, self.times, ttl: nil, isListing: self.isListing, now: self.times.validatedAt)
    }

    private static func rendered(_ lines: [HeaderFields.Line]) -> [UInt8] {
        var bytes: [UInt8] = []
        for line in lines {
            for text in [line.name, ": ", line.value, "\r\n"] { bytes += text.utf8 }
        }
        return bytes
    }

    /// How long it is fresh yet.
    /// - Parameters:
    ///   - ttl: what a rule says.
    ///   - now: seconds since 1970.
    ///   - instant: nanoseconds of a clock that never goes back.
    package func freshness(ttl: Int64?, now: Int64, instant: @autoclosure () -> UInt64) -> Freshness {
        guard ttl == nil else { return .of(fields, times, ttl: ttl, now: now) }
        if let live { return live.freshness(age: times.age(at: now), at: instant()) }
        let first = freshnessAtFirst
        return Freshness(
            lifetime: first.lifetime, age: times.age(at: now), source: first.source,
            isAskedEachTime: first.isAskedEachTime)
    }

    /// The age that it is given out with (RFC 9111 §1.2.2, §5.1).
    package func age(at now: Int64) -> Int64 { min(times.age(at: now), 1 << 31) }

    /// The head that takes its place when there is reason to doubt it: stale until its origin is asked.
    package var doubted: GenerationHead {
        GenerationHead(
            status: status, fields: fields, variant: variant, finalURL: finalURL, isPublic: isPublic,
            storedAt: storedAt,
            times: ResponseTimes(validatedAt: 1, initialAge: .max), isListing: isListing)
    }

    /// The head that takes its place when its bytes turn out to be a playlist.
    /// - Parameter live: of one that goes on; nil for a film's.
    package func ofPlaylist(_ live: LiveTiming?) -> GenerationHead {
        GenerationHead(
            status: status, fields: fields, variant: variant, finalURL: finalURL, isPublic: isPublic,
            storedAt: storedAt, times: times, isListing: true, live: live)
    }

    /// The head that takes its place when its origin has said, in an answer with such fields, that it still holds.
    /// - Parameter instant: nanoseconds of a clock that never goes back.
    package func freshened(
        by newer: HeaderFields, isPublic: Bool, times: ResponseTimes, instant: UInt64
    ) -> GenerationHead {
        GenerationHead(
            status: status, fields: Freshening.updated(fields, with: newer).worthKeeping, variant: variant,
            finalURL: finalURL, isPublic: self.isPublic && isPublic,
            storedAt: storedAt, times: times, isListing: isListing, live: live?.answered(at: instant))
    }

    package static func == (a: GenerationHead, b: GenerationHead) -> Bool {
        a.status == b.status && a.fields == b.fields && a.variant == b.variant && a.finalURL == b.finalURL
            && a.isPublic == b.isPublic
            && a.storedAt == b.storedAt && a.times == b.times
    }
}
