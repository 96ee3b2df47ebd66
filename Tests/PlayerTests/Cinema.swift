import Foundation
import TestSupport
import Testing

/// An origin with one film, and a proxy process with an empty cache before it.
final class Cinema {
    let film: Film
    let bytes: [UInt8]
    let origin: ScriptedOrigin
    let proxy: ProxyProcess
    private let cache: TemporaryDirectory

    init(_ film: Film) throws {
        self.film = film
        bytes = try film.bytes()
        cache = try TemporaryDirectory()
        origin = try ScriptedOrigin()
        origin.serve(film.path, bytes: bytes, contentType: film.contentType)
        proxy = try ProxyProcess(cacheDirectory: cache.path)
    }

    var originURL: String { origin.url(film.path) }
    var proxyURL: String { proxy.url(originURL) }

    var cachePath: String { cache.path }

    /// Waits until so many bytes of the film are cached by a download.
    func waitForDownload(bytes: Int64) throws {
        let end = ContinuousClock.now + .patience
        while ContinuousClock.now < end {
            let answer = try JSONSerialization.jsonObject(
                with: Data(try proxy.get("/api/v1/downloads?state=all").body))
            let downloads = (answer as? [String: Any])?["downloads"] as? [[String: Any]]
            if let cached = downloads?.first?["bytes"] as? Int64, cached >= bytes { return }
        }
        throw DeadlinePassed(what: "\(bytes) bytes of \(film.path)")
    }

    /// How many bytes the origin has sent until now.
    var bytesFromOrigin: Int64 { origin.bytesSent(film.path) }

    /// Compares what the proxy gives with the origin's bytes: in pieces, then as a whole.
    func expectTheOriginsBytes() throws {
        let size = Int64(bytes.count)
        for start in stride(from: 0, to: size, by: 100_003) {
            let range = start..<min(start + 100_003, size)
            let part = try proxy.get(originURL, range: range)
            #expect(part.status == 206)
            expect(part.body, toBe: range)
        }
        let whole = try proxy.get(originURL)
        #expect(whole.status == 200)
        expect(whole.body, toBe: 0..<size)
    }

    /// No expectation of the arrays themselves: to describe how they differ would take minutes.
    private func expect(_ body: [UInt8], toBe range: Range<Int64>) {
        let isRight =
            body.count == range.count
            && bytes.withUnsafeBytes { memcmp($0.baseAddress! + Int(range.lowerBound), body, body.count) == 0 }
        #expect(isRight, "\(film.rawValue), bytes \(range): \(body.count) bytes, not all of them right")
    }

    /// Ends the proxy as a user does.
    func close() throws {
        #expect(try proxy.process.terminate() == .exited(0))
        // It says of each download that it has ended.
        let others = proxy.process.stderr.split(separator: "\n").filter { !$0.contains("[Downloads] downloaded ") }
        #expect(others.isEmpty, "\(others)")
    }
}
