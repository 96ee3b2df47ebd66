import CachePolicy
import ControlAPI
import Reelcache

extension RunningProxy {
    /// Has the next item downloaded when most of this one was played, or of an item of this feed or list, whatever the
    /// setting says. Blocks.
    /// - Throws: `ControlError`
    package func prefetchNext(after url: OriginURL) throws {
        _ = try client.call(\.next, body: WantedItem(url: url))
    }
}
