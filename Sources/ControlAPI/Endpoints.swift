import Activity
import DiskCache
import Downloads

/// The table of the control interface: each request that there is, once. The server carries out what is here
/// (`ControlRoute`), and clients send it; docs/programs/http-api.md describes it.
package struct Endpoints: Sendable {
    package static let all = Endpoints()

    // The cache
    package let cache = Endpoint<Void, CacheReport>(.get, "/cache")
    package let changeLimits = Endpoint<LimitChange, CacheReport>(.patch, "/cache")
    /// Its answer has a line of `ScrubProgress` now and then before the last.
    package let verify = Endpoint<Void, CacheValidation>(.post, "/verify", .repair)

    // Resources
    package let resources = Endpoint<Void, ResourceListing>(
        .get, "/resources", .sort, .filter, .category, .after, .limit, .offset, .brief, .urls)
    package let resource = Endpoint<Void, ResourceDetail>(.get, "/resources", .url, .segments, key: .url)
    package let changeResource = Endpoint<ResourceChange, ResourceDetail>(.patch, "/resources", .url)
    package let removeResources = Endpoint<Void, RemovalReport>(
        .delete, "/resources", .url, .all, .olderThan, .played, .includePinned, .dryRun)
    /// Its body is the file.
    package let importResource = Endpoint<Void, CachedResource>(.put, "/resources", .url, .replace)
    /// With `growing`, lines of `HeldFile.Growth` follow.
    package let file = Endpoint<Void, HeldFile>(.get, "/resources/file", .url, .growing, access: .token)
    package let coverage = Endpoint<Void, CoverageReport>(.get, "/resources/coverage", .url, .from, .to, .buckets)

    // Downloads
    package let downloads = Endpoint<Void, DownloadPage>(
        .get, "/downloads", .state, .category, .id, .sort, .limit, .offset)
    package let addDownloads = Endpoint<DownloadOrders, DownloadList>(.post, "/downloads")
    package let changeDownloads = Endpoint<DownloadChange, DownloadList>(.patch, "/downloads", .id, .all)
    package let downloadSettings = Endpoint<Void, DownloadSettings>(.get, "/downloads/settings")
    package let changeDownloadSettings = Endpoint<DownloadSettingsChange, DownloadTotals>(
        .patch, "/downloads/settings")
    package let downloadHistory = Endpoint<Void, DownloadList>(.get, "/downloads/history", .category, .limit, .state)
    package let clearDownloadHistory = Endpoint<Void, RemovedDownloads>(.delete, "/downloads/history")
    /// Events of `Download`, `RemovedDownload` and `DownloadTotals`.
    package let downloadEvents = Endpoint<Void, Void>(.get, "/downloads/events", .id, .ended)

    // Players
    package let url = Endpoint<Void, PlayerPath>(.get, "/url", .url)
    package let next = Endpoint<WantedItem, WantedItem>(.post, "/next")

    // The dashboard
    package let dashboardLink = Endpoint<Void, DashboardSession.Link>(.post, "/dashboard/link")
    package let dashboardSession = Endpoint<Void, DashboardSession.Report>(.get, "/dashboard/session", access: .open)
    package let beginDashboardSession = Endpoint<DashboardSession.Credential, DashboardSession.Key>(
        .post, "/dashboard/session", access: .open)
    package let endDashboardSession = Endpoint<Void, Void>(.delete, "/dashboard/session", access: .open)

    // What happens
    package let history = Endpoint<Void, HistoryReport>(.get, "/history", .span)
    package let now = Endpoint<Void, NowReport>(.get, "/now")
    /// Events of `NowReport`.
    package let nowEvents = Endpoint<Void, Void>(.get, "/now/events")

    // Feeds
    package let feeds = Endpoint<Void, FeedList>(.get, "/feeds", .urls)
    package let feed = Endpoint<Void, SubscriptionDetail>(.get, "/feeds", .url, .limit, key: .url)
    package let subscribe = Endpoint<SubscriptionRequest, FeedCheckResult>(.post, "/feeds")
    package let removeFeed = Endpoint<Void, FeedSubscription>(.delete, "/feeds", .url)
    package let checkFeeds = Endpoint<Void, FeedChecks>(.post, "/feeds/check", .url)
    package let previewFeed = Endpoint<Void, FeedPreview>(.post, "/feeds/preview", .url, .latest, .title)
    /// Its body is OPML.
    package let importFeeds = Endpoint<[UInt8], FeedImport>(
        .post, "/feeds/import", .latest, .category, .every, .keep, .title, .cap)
    /// Its answer is OPML.
    package let exportFeeds = Endpoint<Void, [UInt8]>(.get, "/feeds/export", access: .token)
}
