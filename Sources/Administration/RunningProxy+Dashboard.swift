import ControlAPI
import Reelcache

extension RunningProxy {
    /// Makes a link that opens the dashboard and signs its browser in: once, within a minute. Blocks.
    package func dashboardLink() throws -> String {
        let link = try client.call(\.dashboardLink)
        return baseURL + link.path
    }
}
