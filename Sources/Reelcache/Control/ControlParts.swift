import CachePolicy
import ControlAPI
import Downloads
import EventIO

/// What the control interface is of.
struct ControlParts: Sendable {
    let policy: Current<ProxyPolicy>
    let live: LiveState
    let downloads: OnDemand<DownloadManager>
    let feeds: OnDemand<SubscriptionManager>
    var scrubs = ScrubTurn()
    /// Distinguishes the events of this proxy from those of its predecessors.
    var session = ""
    /// Has the next item after a URL downloaded when that was played.
    var wantNext: @Sendable (OriginURL) -> Void = { _ in }
    /// Seconds since 1970.
    var now = ProxyTuning().now

    /// What carries out each endpoint, shared by all loops.
    func routes(_ access: ControlAccess, _ numbers: ControlNumbers) -> [ControlRoute] {
        let groups = [
            CacheRoutes(policy: policy, scrubs: scrubs, history: numbers.history, wantNext: wantNext).routes,
            ResourceRoutes(
                policy: policy, downloads: downloads, titles: PresentationTitles(), listings: live.listings, now: now
            ).routes,
            LiveRoutes(live: live, policy: policy, surveys: CoverageSurveys()).routes,
            DownloadRoutes(
                downloads: downloads, events: live.downloadEvents, streams: live.streams, session: session
            ).routes,
            FeedRoutes(feeds: feeds).routes,
            DashboardRoutes(access: access).routes,
        ]
        return groups.flatMap { $0 }
    }
}
