import HTTPModel

/// How a resource is handled: what the rules that match it say, and defaults for the rest.
package struct ResolvedRule: Sendable, Equatable {
    /// Neither stored nor answered from what is.
    package var bypasses = false
    /// Seconds that a response is fresh, whatever its origin says.
    package var ttl: Int64?
    package var ignoresNoStore = false
    /// What plays while its origin cannot be asked, although the origin forbade that.
    package var stalePlay = StalePlay.kept
    package var fill = FillPolicy.standard
    /// Whether each byte costs: then nothing is fetched on the chance that a player comes back, nor to the end for one
    /// that has left.
    package var isMetered = false
    /// How many segments of a stream are fetched after the one that a player reads; 0 for none.
    package var aheadSegments = ResolvedRule.standardAheadSegments
    /// Whether what is fresh answers although the request wants it to be asked for again (`no-cache`); nil: only where
    /// it is a segment that a playlist names.
    package var ignoresReload: Bool?
    /// Fields for the origin, in place of the client's of that name. They go to the origin of the URL, and along no
    /// redirect to another.
    package var headers = HeaderFields()
    /// Whether what is stored is pinned.
    package var pins = false
    /// Stores web pages that come where media was asked for.
    package var storesPages = false
    /// Bytes; what is longer passes by. Nil for any length.
    package var largestStored: Int64?

    package init() {}

    package static let standardAheadSegments = 3
    /// More would be fetched in vain with each seek.
    package static let mostAheadSegments = 20
}

/// What plays while its origin cannot be asked, although the origin forbade that (`no-cache`, `must-revalidate`).
package enum StalePlay: Sendable, Equatable {
    /// Nothing: the origin's word holds.
    case nothing
    /// What somebody has pinned or downloaded.
    case kept
    /// Whatever is stored.
    case everything
}

/// How much of a resource is fetched beyond what is asked for.
package enum FillPolicy: Sendable, Equatable {
    /// Only what is asked for.
    case read
    /// So many bytes past the furthest reader.
    case ahead(Int64)
    /// To the resource's end, whether or not somebody reads on.
    case end
    /// All of it.
    case whole

    package static let standard = FillPolicy.ahead(32 << 20)
}
