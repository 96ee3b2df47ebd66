import Activity
import CachePolicy
import DiskCache
import Upstream

/// What a fetch is started for. The loop that needs its bytes makes the order; another one may carry it out.
struct FetchOrder: Sendable {
    enum Purpose: Sendable {
        /// Find out what the resource is, or whether the stored generation still holds.
        case opening(UpstreamRequest.Span?, owner: FollowerID, isShared: Bool, validating: Generation?)
        /// Fill a gap of a known generation.
        case gap(Generation)
        /// Bring bytes of a known generation without storing them.
        case bypass(Generation, owner: FollowerID)

        /// The generation, if it is known before the origin is contacted.
        var generation: Generation? {
            switch self {
            case .gap(let generation), .bypass(let generation, _): generation
            case .opening: nil
            }
        }

        /// The stored generation that this fetch revalidates.
        var validated: Generation? { if case .opening(_, _, _, let validated) = self { validated } else { nil } }
    }

    let status: SharedFetch
    let purpose: Purpose
    let demand: Demand
    /// Without an upper end while the length is unknown.
    let range: Range<Int64>
    /// Why it contacts the origin first.
    let reason: FetchReason
    /// Whether bytes before these have been sent, or nobody waits.
    var isMidway = false
    /// Whether a download needs its bytes.
    let isForDownload: Bool
    /// The loop that needs its bytes.
    let home: Int
}
