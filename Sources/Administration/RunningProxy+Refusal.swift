import HTTPModel
import Reelcache
import Upstream

extension RunningProxy {
    /// What the proxy answers to a player that asks for a URL, if that is an error: a player says little of it. Asks for
    /// the first byte. Blocks.
    /// - Parameter url: as a player opens it.
    /// - Returns: one line; nil where it plays, or nobody answers.
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

    /// Of a text; an origin's own page says nothing in one line.
    private static func firstLine(_ body: [UInt8]) -> String? {
        let line = String(decoding: body, as: UTF8.self).split(whereSeparator: \.isNewline).first.map(String.init)
        return line.flatMap { $0.hasPrefix("<") ? nil : String($0.prefix(300)).printable }
    }
}
