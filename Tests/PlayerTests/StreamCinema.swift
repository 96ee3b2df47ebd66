import Foundation
import TestSupport
import Testing

/// An origin with one stream, and a proxy process with an empty cache before it.
final class StreamCinema {
    let form: StreamForm
    let origin: ScriptedOrigin
    let proxy: ProxyProcess
    private let entryPath: String
    private let cache: TemporaryDirectory

    init(_ form: StreamForm, _ addresses: StreamAddresses = .relative, proxyArguments: [String] = []) throws {
        self.form = form
        cache = try TemporaryDirectory()
        origin = try ScriptedOrigin()
        entryPath = addresses == .redirected ? "/moved/\(form.entry)" : "/stream/\(form.entry)"
        for (name, bytes) in try form.files() {
            let isPlaylist = name.hasSuffix(".m3u8") || name.hasSuffix(".mpd")
            origin.serve(
                "/stream/\(name)",
                bytes: isPlaylist ? addresses.written(bytes, named: name, folder: origin.url("/stream/")) : bytes,
                contentType: StreamForm.contentType(of: name))
        }
        if addresses == .redirected {
            origin.script(entryPath) { [location = origin.url("/stream/\(form.entry)")] in $0.redirect = location }
        }
        proxy = try ProxyProcess(cacheDirectory: cache.path, arguments: proxyArguments)
    }

    /// Where the stream itself is: not what redirects there, as ffmpeg does not heed that in DASH.
    var originURL: String { origin.url("/stream/\(form.entry)") }
    var proxyURL: String { proxy.url(origin.url(entryPath)) }

    /// How many bytes of the stream the origin has sent until now. What it says of what it does not have does not count.
    var bytesFromOrigin: Int64 {
        origin.snapshot.requests.filter { [200, 206].contains($0.status) }.reduce(0) { $0 + $1.bodyBytesSent }
    }

    /// How many requests for segments, keys and their like the origin has had until now, of what it has.
    var segmentRequests: Int {
        origin.snapshot.requests
            .filter { ![".m3u8", ".mpd"].contains(where: $0.path.hasSuffix) && [200, 206, 304].contains($0.status) }
            .count
    }

    /// Lets its first playlist set a cookie, without which nothing else is sent.
    func gate() throws {
        for name in try form.files().keys {
            origin.script("/stream/\(name)") {
                if name == form.entry {
                    $0.headers = [("Set-Cookie", "token=1; Path=/; HttpOnly")]
                } else {
                    $0.gate = ("token=1", nil)
                }
            }
        }
    }

    /// Does what a player does, and fails where some of that came to the origin past the proxy.
    func throughTheProxy<T>(_ body: (_ url: String) throws -> T) rethrows -> T {
        let before = origin.snapshot.requests.count
        let result = try body(proxyURL)
        let past = Set(origin.snapshot.requests.dropFirst(before).filter { $0.headers["Via"] == nil }.map(\.target))
        #expect(past.isEmpty, "these went past the proxy: \(past.sorted())")
        return result
    }

    /// Stops the origin once the proxy fetches nothing more: a player may leave before its last bytes have arrived.
    func stopOrigin() throws {
        let deadline = ContinuousClock.now + .patience
        while try openFetches() > 0 {
            guard .now < deadline else {
                throw DeadlinePassed(what: "the end of all fetches", instead: proxy.process.stderr)
            }
        }
        origin.stop()
    }

    private func openFetches() throws -> Int {
        let stats = try JSONSerialization.jsonObject(with: Data(proxy.get("/stats").body)) as? [String: Any]
        let upstream = stats?["upstream"] as? [String: Any]
        return try #require(upstream?["open_fetches"] as? Int, "the statistics do not have it")
    }

    /// Ends the proxy as a user does.
    func close() throws {
        #expect(try proxy.process.terminate() == .exited(0))
        // It says of each download that it has ended.
        let others = proxy.process.stderr.split(separator: "\n").filter { !$0.contains("[Downloads] downloaded ") }
        #expect(others.isEmpty, "\(others)")
    }
}
