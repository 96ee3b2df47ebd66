import CachePolicy
import ControlAPI
import HTTPModel

/// A path of the control interface below `/api/v1`, and its methods and parameters.
enum ControlRoute: String, CaseIterable {
    case cache = "/api/v1/cache"
    case resources = "/api/v1/resources"
    case file = "/api/v1/resources/file"
    case coverage = "/api/v1/resources/coverage"
    case verify = "/api/v1/verify"
    case downloads = "/api/v1/downloads"
    case downloadSettings = "/api/v1/downloads/settings"
    case downloadHistory = "/api/v1/downloads/history"
    case downloadEvents = "/api/v1/downloads/events"
    case url = "/api/v1/url"
    case dashboardLink = "/api/v1/dashboard/link"
    case dashboardSession = "/api/v1/dashboard/session"
    case history = "/api/v1/history"
    case now = "/api/v1/now"
    case nowEvents = "/api/v1/now/events"
    case next = "/api/v1/next"
    case feeds = "/api/v1/feeds"
    case feedCheck = "/api/v1/feeds/check"
    case feedPreview = "/api/v1/feeds/preview"
    case feedImport = "/api/v1/feeds/import"
    case feedExport = "/api/v1/feeds/export"

    /// Whether a path belongs to the interface, even if there is nothing at it.
    static func isBelow(_ path: Substring) -> Bool { path == "/api" || path.hasPrefix("/api/") }

    var methods: [String] {
        switch self {
        case .cache: ["GET", "HEAD", "PATCH"]
        case .resources: ["GET", "HEAD", "PATCH", "DELETE", "PUT"]
        case .file, .coverage, .downloadEvents, .history, .now, .nowEvents, .url: ["GET", "HEAD"]
        case .verify, .next: ["POST"]
        case .downloads: ["GET", "HEAD", "POST", "PATCH"]
        case .downloadSettings: ["GET", "HEAD", "PATCH"]
        case .downloadHistory: ["GET", "HEAD", "DELETE"]
        case .dashboardLink: ["POST"]
        case .dashboardSession: ["GET", "HEAD", "POST", "DELETE"]
        case .feeds: ["GET", "HEAD", "POST", "DELETE"]
        case .feedCheck, .feedPreview, .feedImport: ["POST"]
        case .feedExport: ["GET", "HEAD"]
        }
    }

    var allowed: String { (methods + ["OPTIONS"]).joined(separator: ", ") }

    /// Requests that change something, tell secrets or where files are, or keep the disk busy require the token.
    func needsToken(_ method: String) -> Bool {
        switch self {
        case .cache, .resources, .coverage, .downloads, .downloadSettings, .downloadHistory, .downloadEvents, .history,
            .now, .nowEvents, .url, .feeds:
            method != "GET" && method != "HEAD"
        case .file, .verify, .next, .dashboardLink, .feedCheck, .feedPreview, .feedImport, .feedExport: true
        case .dashboardSession: false
        }
    }

    /// Whether anybody may send the request: a dashboard asks whether it has to sign in, and the body with which it does
    /// has the token or a link.
    var isOpen: Bool { self == .dashboardSession }

    func parameters(_ method: String) -> [String] {
        switch (self, method) {
        case (.cache, _), (.next, _): []
        case (.resources, "PATCH"): ["url"]
        case (.resources, "DELETE"): ["url", "all", "older_than", "dry_run"]
        case (.resources, "PUT"): ["url", "replace"]
        case (.resources, _): ["url", "sort", "filter", "after", "limit", "offset", "brief", "segments", "urls"]
        case (.file, _): ["url", "growing"]
        case (.coverage, _): ["url", "from", "to", "buckets"]
        case (.verify, _): ["repair"]
        case (.downloads, "POST"): []
        case (.downloads, "PATCH"): ["id", "all"]
        case (.downloads, _): ["state", "category", "id", "sort", "limit", "offset"]
        case (.downloadSettings, _), (.downloadHistory, "DELETE"): []
        case (.downloadHistory, _): ["category", "limit"]
        case (.downloadEvents, _): ["id", "ended"]
        case (.url, _): ["url"]
        case (.dashboardLink, _), (.dashboardSession, _): []
        case (.history, _): ["span"]
        case (.now, _), (.nowEvents, _): []
        case (.feeds, "POST"), (.feedExport, _): []
        case (.feeds, "DELETE"), (.feedCheck, _): ["url"]
        case (.feeds, _): ["url", "limit", "urls"]
        case (.feedPreview, _): ["url", "latest", "title"]
        case (.feedImport, _): ["latest", "category", "every", "keep", "title", "cap"]
        }
    }
}

/// The parameters of a request. Each method throws the error that answers an invalid value.
struct ControlParameters {
    private let values: QueryParameters

    /// - Parameter known: the accepted names, besides `secrets`, which every path accepts: whether to show secrets
    ///   in URLs.
    init(target: String, known: [String]) throws(ControlError) {
        let known = known + [Self.secrets]
        do throws(QueryParameters.Malformed) { values = try QueryParameters(target: target) } catch {
            throw ControlError(400, error.reason)
        }
        if let unknown = values.names(except: known).first {
            let hint = known.contains("url") ? "; write an & in a URL as %26" : ""
            throw ControlError(
                400,
                "there is no parameter \(unknown.prefix(100)) here; the parameters are \(known.joined(separator: ", "))\(hint)"
            )
        }
    }

    private static let secrets = "secrets"

    /// Whether to show secrets in URLs.
    func showsSecrets() throws(ControlError) -> Bool { try flag(Self.secrets) }

    /// The same for a target whose parameters were checked before.
    static func showsSecrets(_ target: String) -> Bool {
        guard let value = (try? QueryParameters(target: target))?[secrets] else { return false }
        return value.isEmpty || value == "true"
    }

    func has(_ name: String) -> Bool { values[name] != nil }

    subscript(_ name: String) -> String? { values[name] }

    /// - Returns: nil if the parameter is missing.
    func url() throws(ControlError) -> OriginURL? {
        guard let text = values["url"] else { return nil }
        do throws(OriginURLError) { return try OriginURL(url: text) } catch {
            throw ControlError(400, "url: \(error.reason)")
        }
    }

    func requiredURL() throws(ControlError) -> OriginURL {
        guard let url = try url() else {
            throw ControlError(400, "the parameter url is missing: name a media URL, percent-encoded")
        }
        return url
    }

    /// A flag without a value means true, as in `?dry_run`.
    func flag(_ name: String) throws(ControlError) -> Bool {
        switch values[name] {
        case nil, "false": return false
        case "true", "": return true
        case let value?: throw ControlError(400, "\(name) is true or false, not \(value.prefix(100))")
        }
    }

    /// The numbers of downloads, separated by commas; nil if the parameter is missing.
    func ids(_ name: String = "id") throws(ControlError) -> [Int64]? {
        guard let text = values[name] else { return nil }
        return try text.split(separator: ",", omittingEmptySubsequences: false).map { part throws(ControlError) in
            guard let id = ASCII.decimal(part.utf8), id > 0 else {
                throw ControlError(
                    400,
                    "\(name) is the number of a download, or several separated by commas, such as 3,7, not \(text.prefix(100))"
                )
            }
            return id
        }
    }

    func number(_ name: String, in range: ClosedRange<Int>) throws(ControlError) -> Int? {
        guard let text = values[name] else { return nil }
        guard let number = ASCII.decimal(text.utf8).flatMap({ Int(exactly: $0) }), range.contains(number) else {
            throw ControlError(
                400, "\(name) is a number from \(range.lowerBound) to \(range.upperBound), not \(text.prefix(100))")
        }
        return number
    }
}
