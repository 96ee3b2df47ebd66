import HTTPModel
import Upstream

/// Requests to a proxy of this machine, whoever runs it and whatever its cache.
package enum LocalProxy {
    /// Whether a Reelcache answers there: its `/healthz` has its own body. Blocks.
    /// - Parameter baseURL: such as `http://127.0.0.1:7335`.
    package static func answers(at baseURL: String) -> Bool {
        guard let health = try? BlockingFetch.get(url: baseURL + "/healthz", timeout: 2) else { return false }
        return health.status == 200 && health.body == Array("ok\n".utf8)
    }

    /// The error response to a player that requests a URL, because players show little of it. Requests the first
    /// byte. Blocks.
    /// - Parameters:
    ///   - url: as a player opens it.
    ///   - baseURL: the proxy's.
    /// - Returns: one line; nil if it plays, or the proxy does not answer.
    package static func refusal(ofURL url: String, from baseURL: String) -> String? {
        var request = BlockingFetch(url)
        request.fields.append("Range", "bytes=0-0")
        var body: [UInt8] = []
        let head = try? request.perform { head, bytes in
            guard head.status >= 400 else { return .enough }
            body.append(contentsOf: bytes.prefix(1000))
            return body.count < 1000 ? .more : .enough
        }
        guard let head, head.status >= 400 else { return nil }
        return "the proxy at \(baseURL) answers \(head.status)" + (firstLine(body).map { ": \($0)" } ?? "")
    }

    /// The first line of a text; an origin's own HTML page has no useful one.
    private static func firstLine(_ body: [UInt8]) -> String? {
        let line = String(decoding: body, as: UTF8.self).split(whereSeparator: \.isNewline).first.map(String.init)
        return line.flatMap { $0.hasPrefix("<") ? nil : String($0.prefix(300)).printable }
    }
}
