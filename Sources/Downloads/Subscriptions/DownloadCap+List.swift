import CachePolicy

extension DownloadCap {
    /// Parses the caps of a feed: `500MB/day`, `500MB/day,5GB/month`, or `none`; nil for anything else.
    package static func list(_ text: String) -> [DownloadCap]? {
        if text == "none" { return [] }
        let texts = text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
        return try? parse(texts)
    }

    /// The text that `list` parses.
    package static func text(_ caps: [DownloadCap]) -> String {
        caps.isEmpty ? "none" : caps.map(\.text).joined(separator: ",")
    }
}
