import HTTPModel
import Reelcache
import Upstream

extension RunningProxy {
    /// The proxy's error response to a player that requests a URL, because players show little of it. Requests the
    /// first byte. Blocks.
    /// - Parameter url: as a player opens it.
    /// - Returns: one line; nil if it plays, or the proxy does not answer.
    package func refusal(ofURL url: String) -> String? {
        var request = BlockingFetch(url)
        request.fields.append("Range", "bytes=0-0")
        var body: [UInt8] = []
        let head = try? request.perform { head, bytes in
            guard head.status >= 400 else { return .enough }
            body.append(contentsOf: bytes.prefix(1000))
            return body.count < 1000 ? .more : .enough
        }
        guard let head, head.status >= 400 else { return nil }
        return "the proxy at \(baseURL) answers \(head.status)" + (Self.firstLine(body).map { ": \($0)" } ?? "")
    }

    /// The first line of a text; an origin's own HTML page has no useful one.
    private static func firstLine(_ body: [UInt8]) -> String? {
        let line = String(decoding: body, as: UTF8.self).split(whereSeparator: \.isNewline).first.map(String.init)
        return line.flatMap { $0.hasPrefix("<") ? nil : String($0.prefix(300)).printable }
    }
}
