import CachePolicy
import Playlists

/// What is played after an episode of a subscribed feed.
extension SubscriptionManager {
    /// Finds the next newer episode of the feed that has this one. Does not wait: a check may be parsing a long feed.
    /// - Parameter end: called once, inside the actor; `.unknown` if no subscribed feed has the episode.
    package nonisolated func next(after url: OriginURL, then end: @escaping @Sendable (PlaybackOrder.Next) -> Void) {
        post { end($0.next(after: url)) }
    }

    /// Orders the download of an episode, unless it has been a download of its subscription already. That one retries it
    /// if it failed, and does not want it again if it was removed. Does not wait.
    /// - Parameter order: called inside the actor, where it may wait for the download manager and the store.
    package nonisolated func unlessOrdered(_ url: OriginURL, _ order: @escaping @Sendable (OriginURL) -> Void) {
        post { if !$0.wasOrdered(url) { order(url) } }
    }

    private func next(after url: OriginURL) -> PlaybackOrder.Next {
        do throws(DownloadError) {
            try checkOpen()
            return try subscriptions.next(after: url)
        } catch {
            // Also while the cache is closing.
            logger.info("cannot find what follows \(url.absolute): \(error)")
            return .unknown
        }
    }

    /// Whether an episode of any subscription with this URL became a download. Also if this cannot be known.
    private func wasOrdered(_ url: OriginURL) -> Bool {
        do throws(DownloadError) {
            try checkOpen()
            return try subscriptions.wasOrdered(url)
        } catch {
            logger.info("cannot find out whether \(url.absolute) was downloaded before: \(error)")
            return true
        }
    }
}
