import CachePolicy
import HTTPModel
import Upstream

/// Where a fetch requests media that is not at the URL that the client named: behind a page, or at a fresh link because
/// the client's has expired. Bound to the fetch's loop.
///
/// A link that is refused is left once for each stretch of bytes, and later ones after a back-off: an origin that
/// refuses every link must not keep the resolver running.
struct MovedMedia {
    private let demand: Demand
    private let locations: MediaLocations
    /// nil if it is at the demand's URL.
    private(set) var media: LocatedMedia?
    /// Where it was when the fetch's first bytes came; nil before, or if they came from the demand's URL.
    private var origin: LocatedMedia?
    /// How many bytes the fetch had delivered when it left a link; nil before the first.
    private var left: Int64?
    /// How many links it has left, since one that brought enough.
    private var departures = 0

    /// Seconds before the second departure; twice as long before each further one.
    private static let firstBackoff = 0.25
    private static let longestBackoff = 8.0
    /// After this many bytes, a link has expired rather than been refused: the next is used at once.
    private static let enough: Int64 = 1 << 20

    init(_ demand: Demand, _ locations: MediaLocations) { (self.demand, self.locations) = (demand, locations) }

    /// Finds out where the media is now, before a request.
    /// - Parameters:
    ///   - isGap: whether a gap is requested.
    ///   - waiter: called once, on another thread, if the result is `waiting`.
    /// - Returns: nil if the media is at the demand's URL.
    mutating func find(
        isGap: Bool, waiter: @escaping @Sendable (Result<LocatedMedia, ResolverFailure>) -> Void
    ) -> KnownLocation? {
        if let resolver = demand.resolvedRule.resolver {
            let known = locations.find(demand.url, by: resolver, waiter: waiter)
            if case .located(let media) = known { self.media = media }
            return known
        }
        guard demand.resolvedRule.refresh != nil, isGap else { return nil }
        media = locations.substitute(for: demand.url)
        return media.map { .located($0) }
    }

    /// The first bytes are on their way.
    mutating func begin() { origin = media }

    /// Whether the media is still at the location from which the fetch's first bytes came.
    var isWhereItBegan: Bool { media != nil && media == origin }

    /// An origin has answered with content.
    func worked() {
        if let media { locations.worked(media, for: demand.url, by: demand.resolvedRule.resolver) }
    }

    /// Leaves a link that was refused with a status that may mean that it has expired.
    /// - Parameter delivered: how many bytes the fetch has delivered so far.
    /// - Returns: seconds after which to request the media where it is then; nil if the refusal counts.
    mutating func leave(after status: Int, isGap: Bool, delivered: Int64) -> Double? {
        guard left.map({ delivered > $0 }) ?? true else { return nil }
        if let media, !locations.refused(media, for: demand.url, by: demand.resolvedRule.resolver, status: status) {
            return nil
        }
        if demand.resolvedRule.resolver == nil {
            guard isGap, let refresh = demand.resolvedRule.refresh else { return nil }
            media = locations.substitute(refresh, for: demand.url)
        } else {
            guard media != nil else { return nil }
            media = nil
        }
        if delivered -| (left ?? 0) >= Self.enough { departures = 0 }
        left = delivered
        defer { departures += 1 } // no trap: one for each departure
        let doublings = min(departures, 10) - 1 // no trap: a small number
        return departures == 0
            ? 0 : min(Self.longestBackoff, Double(sign: .plus, exponent: doublings, significand: Self.firstBackoff))
    }
}
