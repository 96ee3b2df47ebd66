import ControlAPI
import Reelcache

extension RunningProxy {
    /// Makes a link that opens the dashboard and signs its browser in: once, within a minute. Blocks.
    package func dashboardLink() throws -> String {
        let link = try ask(request("POST", "/api/v1/dashboard/link"), for: DashboardLink.self)
        return baseURL + link.path
    }
}
