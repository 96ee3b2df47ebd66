import Foundation

/// A `reelcache serve` on a free port of 127.0.0.1 that may fetch from origins there. It is killed when this object
/// goes.
package final class ProxyProcess: Sendable {
    package let process: ChildProcess
    /// As the program printed it: `http://127.0.0.1:port`.
    package let baseURL: String
    package let port: Int

    /// Starts it and waits until it serves.
    /// - Parameters:
    ///   - arguments: further ones for `serve`.
    ///   - allow: nil for a proxy that is not told by a flag.
    /// - Throws: `DeadlinePassed` with its output when it does not come up.
    package init(
        cacheDirectory: String, arguments: [String] = [], allow: String? = "127.0.0.1",
        environment: [String: String?] = [:]
    ) throws {
        process = try ReelcacheCommand.start(
            ["serve", "--listen", "127.0.0.1:0", "--cache-dir", cacheDirectory] + (allow.map { ["--allow", $0] } ?? [])
                + arguments, environment: environment)
        let line = try process.waitForLine(containing: " serves at ")
        guard let match = line.firstMatch(of: /serves at (http:\/\/127\.0\.0\.1:(\d+)),/), let port = Int(match.2)
        else {
            throw DeadlinePassed(what: "a URL in the first line", instead: line)
        }
        (baseURL, self.port) = (String(match.1), port)
    }

    /// The request target for an origin's URL: `/http/host:port/path`.
    package static func target(_ originURL: String) -> String {
        "/" + originURL.replacing("://", with: "/", maxReplacements: 1)
    }

    /// The URL that a player opens for an origin's URL.
    package func url(_ originURL: String) -> String { baseURL + Self.target(originURL) }

    /// Makes one request on a new connection: for an origin's URL, or for a path of the proxy's own.
    package func get(_ urlOrPath: String, range: Range<Int64>? = nil) throws -> RawClient.Response {
        let target = urlOrPath.hasPrefix("/") ? urlOrPath : Self.target(urlOrPath)
        return try RawClient.get(port: port, path: target, range: range?.rangeField)
    }
}
