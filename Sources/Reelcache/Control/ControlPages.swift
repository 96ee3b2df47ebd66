import CachePolicy
import HTTPModel

/// Pages for people with a browser.
enum ControlPages {
    /// Whether a path belongs to the control interface, even if there is nothing at it.
    static func isBelowAPI(_ path: Substring) -> Bool { path == "/api" || path.hasPrefix("/api/") }

    /// Whether this is the path of the proxy's own page. If an origin is mounted at `/`, the page is at `/api/`.
    static func isHome(_ path: Substring) -> Bool { ["/", "/api", "/api/"].contains(path) }

    /// Whether a client names HTML among what it accepts, as browsers do (RFC 9110 §12.5.1).
    static func acceptsHTML(_ accept: String?) -> Bool {
        (accept ?? "").split(separator: ",").contains { range in
            let parts = range.split(separator: ";").map { ASCII.trimmed($0).lowercased() }
            return parts.first == "text/html"
                && !parts.dropFirst().contains { $0.hasPrefix("q=") && Double($0.dropFirst(2)) == 0 }
        }
    }

    static func home(_ policy: ProxyPolicy) -> String {
        var lines = ["Reelcache."]
        if policy.servesAnyOrigin {
            lines.append("Put /https/ (or /http/) and the rest of a media URL after this address:")
            lines.append("for https://example.org/film.mp4 the player opens /https/example.org/film.mp4 here.")
        }
        let mounts = policy.mounts.map(\.path).sorted()
        if !mounts.isEmpty { lines.append("Mounted here: \(mounts.joined(separator: ", ")).") }
        if mounts.isEmpty, !policy.servesAnyOrigin {
            lines.append("It serves nothing: any_origin is false, and nothing is mounted.")
        }
        lines.append("Statistics are at /stats and /metrics, health is at /healthz, cached resources are at")
        lines.append("/api/v1/resources, and downloads at /api/v1/downloads.")
        lines.append(
            policy.isOneSite ? "There is no dashboard: \(withoutDashboard)." : "A browser shows the dashboard here.")
        return lines.joined(separator: "\n")
    }

    /// Why there is no dashboard, where it is not served.
    static let withoutDashboard =
        "the proxy serves a single origin, whose pages could use it; see reelcache stats, or mount a second origin"

    static func nothing(at path: Substring, _ policy: ProxyPolicy) -> String {
        "there is nothing at \(path.prefix(200)); \(places(policy)); statistics are at /stats"
    }

    /// The places where media is served.
    private static func places(_ policy: ProxyPolicy) -> String {
        let any = policy.servesAnyOrigin ? ["/https/HOST/PATH and /http/HOST/PATH"] : []
        let all = any + policy.mounts.map(\.path).sorted()
        return all.isEmpty ? "no media is served" : "media is at \(all.joined(separator: ", "))"
    }
}
