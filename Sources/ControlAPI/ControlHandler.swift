import Foundation
import HTTPModel
import HTTPTransport
import Metrics

/// Answers what is not media: statistics and health. Loop-bound.
package final class ControlHandler: RequestHandler {
    private let snapshot: @Sendable () -> StatsSnapshot

    /// - Parameter snapshot: the counters now. Called on a loop: it must not block.
    package init(snapshot: @escaping @Sendable () -> StatsSnapshot) {
        self.snapshot = snapshot
    }

    package func handle(_ exchange: Exchange) {
        let path = exchange.request.target.prefix { $0 != "?" }
        switch exchange.request.method {
        case .get, .head: break
        case .options: return exchange.respond(204, text: "") { $0.field("Allow", "GET, HEAD, OPTIONS") }
        case .other(let name):
            return exchange.respond(405, text: "\(name) is not supported here; use GET or HEAD", closes: true) { $0.field("Allow", "GET, HEAD, OPTIONS") }
        }
        switch path {
        case "/stats": stats(exchange)
        case "/healthz": exchange.respond(200, text: "ok")
        case "/": exchange.respond(200, text: Self.welcome)
        default:
            exchange.respond(404, text: "there is nothing at \(path.prefix(200)); media is at /https/HOST/PATH and /http/HOST/PATH, statistics are at /stats")
        }
    }

    private static let welcome = """
        Reelcache. Put /https/ (or /http/) and the rest of a media URL after this address:
        for https://example.org/film.mp4 the player opens /https/example.org/film.mp4 here.
        Statistics are at /stats, health is at /healthz.
        """

    private func stats(_ exchange: Exchange) {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
        do {
            let body = try encoder.encode(snapshot()) + Data("\n".utf8)
            var response = Response(200, length: Int64(body.count))
            response.field("Content-Type", "application/json")
            response.field("Cache-Control", "no-store")
            exchange.respond(response, body: BytesSource([UInt8](body)))
        } catch {
            exchange.respond(500, text: "the statistics cannot be written as JSON: \(error)")
        }
    }
}
