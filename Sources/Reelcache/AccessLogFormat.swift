/// The form of the lines of the access log. `docs/operators/monitoring.md` lists their parts.
public enum AccessLogFormat: String, Sendable, CaseIterable {
    /// An object of JSON on each line.
    case json
    /// The combined format of Apache httpd, with the cache's status, bytes and times after it.
    case combined
}
