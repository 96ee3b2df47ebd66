import CachePolicy
import HTTPModel
import Upstream

/// What the settings decide about a URL.
struct RuleFacts: Sendable, Equatable {
    /// With secrets masked.
    var url: String
    var isServed = true
    var isOffline = false
    var bypasses = false
    var largestStored: Int64?

    var finding: Finding {
        if !isServed {
            return .problem(
                "rules", "\(url) is not served: any_origin is false, and no mount leads there",
                "add a mount, or set any_origin to true")
        }
        if isOffline {
            return .warning("rules", "offline is set: only cached media plays", "set offline to false")
        }
        if bypasses {
            return .warning("rules", "a rule makes it bypass the cache", "remove bypass from that rule")
        }
        return .ok("rules", largestStored.map { "cached, if it is not longer than \(ByteSize(bytes: $0))" } ?? "cached")
    }
}

/// The addresses of a URL's host.
struct AddressFacts: Sendable, Equatable {
    var host: String
    /// Empty if the name does not resolve, or is for the upstream proxy to look up.
    var addresses: [String]
    /// The first private address that is not allowed.
    var refused: String?
    /// The address of the upstream proxy that connects to it; nil for none.
    var proxy: String?

    var isReachable: Bool { refused == nil && (proxy != nil || !addresses.isEmpty) }

    var finding: Finding {
        if let proxy, addresses.isEmpty { return .ok("host", "\(host) is looked up by \(proxy) (upstream_proxy)") }
        guard let first = addresses.first else {
            return .problem(
                "host", "\(host) does not resolve", "check the name, and the name servers in /etc/resolv.conf")
        }
        guard let refused else { return .ok("host", "\(host) is at \(first)") }
        return .problem(
            "host", "\(host) is at the private address \(refused), from which nothing is fetched unless you allow it",
            "add to the configuration: allow: [\(host)]")
    }
}

/// The answer of an origin, or of the proxy, to a request for the first byte.
enum AnswerFacts: Sendable, Equatable {
    case failed(UpstreamError)
    case head(AnswerHead)

    /// The findings about the origin.
    var originFindings: [Finding] {
        switch self {
        case .failed(let error): [Self.failure(error)]
        case .head(let head): head.originFindings
        }
    }

    private static func failure(_ error: UpstreamError) -> Finding {
        switch error {
        case .tls:
            .problem(
                "origin", "\(error)",
                "check the clock, and set ca_file if the certificate is signed by an authority of your own")
        case .addressRefused(let host, _): .problem("origin", "\(error)", "add to the configuration: allow: [\(host)]")
        case .cannotResolve: .problem("origin", "\(error)", "check the name, and the name servers")
        case .timedOut: .problem("origin", "\(error)", "try again later, or raise connect_timeout")
        default: .problem("origin", "\(error)", "check that the origin is running, and reachable from here")
        }
    }

    private var status: Int? { if case .head(let head) = self { head.status } else { nil } }

    /// The finding about the proxy.
    /// - Parameters:
    ///   - origin: the origin's answer.
    ///   - url: as a player opens it.
    func proxyFinding(_ origin: AnswerFacts, url: String) -> Finding {
        switch (self, origin) {
        case (.failed(let error), _):
            return .problem("player's URL", "\(url) cannot be reached: \(error)", "restart the proxy")
        case (.head(let head), _) where (head.status == 403 || head.status == 421) && head.status != origin.status:
            return .problem(
                "player's URL", "the proxy answers \(head.status) to \(url)",
                head.status == 403 ? "add the host to allow, and reload the proxy" : "add the name in the URL to names")
        case (.head(let head), .head(let other)) where !head.isMedia && other.isMedia:
            return .problem(
                "player's URL", "the proxy answers \(head.status) to \(url), but the origin does not",
                "see the proxy's log")
        case (.head(let head), .head(let other))
        where head.isMedia && other.length != nil && head.length != other.length && !head.isListing:
            let lengths = [head.length, other.length].map { $0.map { "\($0) bytes" } ?? "no length" }
            return .warning(
                "player's URL", "the proxy reports \(lengths[0]), and the origin \(lengths[1])",
                "the file has changed: it is fetched again when the cached one expires, or after reelcache rm")
        case (.head(let head), .failed) where head.isMedia:
            return .ok("player's URL", "\(url) plays from the cache")
        case (.head(let head), _):
            return head.isMedia
                ? .ok("player's URL", "\(url) answers \(head.status)")
                : .problem("player's URL", "\(url) answers \(head.status)", "see the finding about the origin")
        }
    }
}

/// The contents of a response's head.
struct AnswerHead: Sendable, Equatable {
    var status: Int
    /// Whether the range request was answered with a range.
    var hasRanges = false
    /// Whether it has a strong ETag, or a Last-Modified date.
    var hasValidator = false
    /// The length of the whole resource, in bytes.
    var length: Int64?
    var type: String?
    /// The host that answered, if a redirect led away from the requested URL.
    var movedTo: String?
    /// Seconds since 1970.
    var date: Int64?

    var isMedia: Bool { 200..<300 ~= status }

    /// The proxy may send it with other URLs in it, and so with another length.
    var isListing: Bool { type.map(Listing.isListing(type:)) ?? false }

    var originFindings: [Finding] {
        guard isMedia else { return [refusal] }
        var findings: [Finding] = []
        if type?.lowercased().hasPrefix("text/html") == true {
            findings.append(
                .warning(
                    "origin", "it answers with a web page instead of media",
                    "open the URL in a browser: a login page or a captive portal may be in between"))
        }
        if !hasRanges {
            findings.append(
                .warning("origin", "it ignores byte ranges", "expect seeks to wait for everything before them"))
        }
        if !hasValidator {
            findings.append(
                .warning(
                    "origin", "it sends neither ETag nor Last-Modified",
                    "expect the whole file to be fetched again when it expires, or set ttl in a rule"))
        }
        return findings.isEmpty ? [.ok("origin", summary)] : findings
    }

    private var summary: String {
        let size = length.map { "\(ByteSize(bytes: $0))" } ?? "of unknown length"
        return "answers \(status), \(size), with byte ranges and a validator" + (movedTo.map { ", from \($0)" } ?? "")
    }

    private var refusal: Finding {
        switch status {
        case 401, 403:
            .problem(
                "origin", "it answers \(status)",
                "check the token in the URL, which may have expired, or set headers in a rule")
        case 404, 410: .problem("origin", "it answers \(status)", "check the URL")
        case 429, 500...: .problem("origin", "it answers \(status)", "try again later")
        default: .problem("origin", "it answers \(status)", "check the URL")
        }
    }
}
