import CachePolicy
import HTTPModel
import Synchronization

/// What is known of a generation besides its bytes. Immutable: after a validation, another head replaces it.
package final class GenerationHead: Sendable, Equatable {
    /// The status of a plain GET: 200, or the origin's own if this is its error page.
    package let status: Int
    /// The origin's header fields, as far as they are kept.
    package let fields: HeaderFields
    /// The request fields that selected it.
    package let variant: Variant
    /// Where the bytes came from, after redirects.
    package let finalURL: String
    /// Whether they came from a public address. If not, pages of other sites must not read them.
    package let isPublic: Bool
    /// Seconds since 1970.
    package let storedAt: Int64
    /// The times from which its age counts.
    package let times: ResponseTimes
    /// Whether it is a playlist or a feed, whatever its origin calls it.
    package let isListing: Bool
    /// Whether its origin calls it a playlist, a feed or a list of files.
    package let isCertainListing: Bool
    /// How long a live playlist stands for its stream. Known only to this process, and neither compared nor saved.
    package let live: LiveTiming?
    /// Whether it is a playlist that states that it does not change: its lifetime is that of a file. Known only to this
    /// process, too.
    package let isUnchanging: Bool

    /// `fields` as they are sent, each line ended by CRLF; fields that speak for the origin as a site are separate.
    package let fieldBytes: [UInt8]
    package let siteBytes: [UInt8]
    /// What a browser can do with it.
    package let safety: ContentSafety
    /// Whether `Date` is among the fields.
    package let hasDate: Bool
    package let validators: RepresentationValidators
    /// The value for `If-Range` in requests for gaps of this generation.
    package let rangeCondition: String?
    private let lastRendering = Mutex<(excluded: FieldNames, bytes: [UInt8])?>(nil)
    /// As it was first read: the terms rarely change. The bits of a reference that this object holds, 0 before: the
    /// generic `AtomicLazyReference` looks its types up at each load.
    private let readingBits = Atomic<UInt>(0)

    /// - Parameters:
    ///   - times: nil if it was new when it was stored.
    ///   - isListing: whether it is a listing although its fields do not say so.
    package init(
        status: Int, fields: HeaderFields, variant: Variant = Variant(), finalURL: String, isPublic: Bool = false,
        storedAt: Int64,
        times: ResponseTimes? = nil, isListing: Bool = false, live: LiveTiming? = nil, isUnchanging: Bool = false
    ) {
        self.status = status
        self.fields = fields
        self.variant = variant
        self.finalURL = finalURL
        self.isPublic = isPublic
        self.storedAt = storedAt
        self.times = times ?? ResponseTimes(validatedAt: storedAt)
        (fieldBytes, siteBytes) = Self.rendered(fields)
        let kind = Kind.of(fields)
        safety = kind.safety
        let tag = fields["ETag"].flatMap { EntityTag(parsing: $0) }
        validators = RepresentationValidators(
            etag: tag, lastModified: fields["Last-Modified"].flatMap { HTTPDate.parse($0) })
        rangeCondition = Combining.condition(for: fields, tag)
        hasDate = fields["Date"] != nil
        isCertainListing = kind.isCertainListing
        self.isListing = isListing || kind.isListing
        (self.live, self.isUnchanging) = (live, isUnchanging)
    }

    deinit { knownReading?.release() }

    private var knownReading: Unmanaged<Reading>? {
        UnsafeRawPointer(bitPattern: readingBits.load(ordering: .acquiring)).map { Unmanaged.fromOpaque($0) }
    }

    /// The first reading, which is made if there is none.
    func firstReading(_ make: () -> Reading) -> Reading {
        if let known = knownReading { return known.takeUnretainedValue() }
        let made = Unmanaged.passRetained(make()), bits = UInt(bitPattern: made.toOpaque())
        guard readingBits.compareExchange(expected: 0, desired: bits, ordering: .acquiringAndReleasing).exchanged
        else {
            made.release()
            return firstReading(make)
        }
        return made.takeUnretainedValue()
    }

    /// What a type of media says. Nearly all responses have one of a few.
    private struct Kind {
        let safety: ContentSafety
        let isCertainListing, isListing: Bool

        private static let known = Mutex<[String: Kind]>([:])
        /// How many types are remembered, and how long they may be.
        private static let (most, longest) = (256, 128)

        private init(_ fields: HeaderFields) {
            safety = ContentSafety(fields)
            isCertainListing = fields["Content-Type"].map { Listing.isCertain(type: $0) } ?? false
            isListing = isCertainListing || Listing.isListing(fields)
        }

        static func of(_ fields: HeaderFields) -> Kind {
            let types = fields.all("Content-Type")
            guard types.count == 1, types[0].utf8.count <= longest else { return Kind(fields) }
            if let kind = known.withLock({ $0[types[0]] }) { return kind }
            let kind = Kind(fields)
            known.withLock { known in
                if known.count >= most { known = [:] }
                known[types[0]] = kind
            }
            return kind
        }
    }

    /// `fieldBytes` without some fields. Rendered once: all answers with a text that was made of this one leave out the
    /// same.
    package func fieldBytes(without excluded: FieldNames) -> [UInt8] {
        if let known = lastRendering.withLock({ $0 }), known.excluded == excluded { return known.bytes }
        var bytes: [UInt8] = []
        for line in fields.lines where !excluded.contains(line.name) && !SiteFields.isOfOrigin(line.name) {
            line.write(to: &bytes)
        }
        lastRendering.withLock { [bytes] in $0 = (excluded, bytes) }
        return bytes
    }

    private static func rendered(_ fields: HeaderFields) -> (fields: [UInt8], site: [UInt8]) {
        var (bytes, site): ([UInt8], [UInt8]) = ([], [])
        bytes.reserveCapacity(fields.lines.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count + 4 })
        for line in fields.lines {
            if SiteFields.isOfOrigin(line.name) { line.write(to: &site) } else { line.write(to: &bytes) }
        }
        return (bytes, site)
    }

    /// The value of `Age` (RFC 9111 §1.2.2, §5.1).
    package func age(at now: Int64) -> Int64 { min(times.age(at: now), 1 << 31) }

    private func with(
        fields: HeaderFields? = nil, variant: Variant? = nil, isPublic: Bool? = nil, times: ResponseTimes? = nil,
        isListing: Bool? = nil, live: LiveTiming?, isUnchanging: Bool? = nil
    ) -> GenerationHead {
        GenerationHead(
            status: status, fields: fields ?? self.fields, variant: variant ?? self.variant, finalURL: finalURL,
            isPublic: isPublic ?? self.isPublic, storedAt: storedAt, times: times ?? self.times,
            isListing: isListing ?? self.isListing, live: live, isUnchanging: isUnchanging ?? self.isUnchanging)
    }

    /// The head of a short response: other request fields select it, and no more of its fields are held than is worth
    /// while.
    package func of(_ variant: Variant, _ terms: CacheTerms, live: LiveTiming? = nil) -> GenerationHead {
        with(fields: fields.storable(under: terms).worthKeeping, variant: variant, live: live)
    }

    /// The head after a reason for doubt: stale until the origin is contacted.
    package var doubted: GenerationHead { with(times: ResponseTimes(validatedAt: 1, initialAge: .max), live: nil) }

    /// The head after bytes came from a server whose address is unknown: pages of other sites may not read them.
    package var ofUnknownScope: GenerationHead { with(isPublic: false, live: live) }

    /// The head after its bytes turned out to be a playlist or a feed.
    /// - Parameters:
    ///   - live: the timing of a live playlist; nil for a film's and for a feed.
    ///   - isUnchanging: whether it states that it does not change.
    package func ofPlaylist(_ live: LiveTiming?, isUnchanging: Bool = false) -> GenerationHead {
        with(isListing: true, live: live, isUnchanging: isUnchanging)
    }

    /// The head after its origin has confirmed the generation with an answer that has these fields.
    /// - Parameters:
    ///   - terms: a shared cache does not store all fields.
    ///   - instant: nanoseconds of a monotonic clock.
    package func freshened(
        by newer: HeaderFields, isPublic: Bool, _ terms: CacheTerms, times: ResponseTimes, instant: UInt64
    ) -> GenerationHead {
        let updated = Freshening.updated(fields, with: newer).storable(under: terms)
        // Each answer can add essential fields: those that no longer fit with them are left out.
        return with(
            fields: updated.canBeKept ? updated.worthKeeping : fields, isPublic: self.isPublic && isPublic,
            times: times, live: live?.answered(at: instant))
    }

    package static func == (a: GenerationHead, b: GenerationHead) -> Bool {
        a.status == b.status && a.fields == b.fields && a.variant == b.variant && a.finalURL == b.finalURL
            && a.isPublic == b.isPublic
            && a.storedAt == b.storedAt && a.times == b.times
    }
}
