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

    /// How many bytes the origin has sent until now.
    var bytesFromOrigin: Int64 { origin.bytesSent(film.path) }

    /// Compares what the proxy gives with the origin's bytes: in pieces, then as a whole.
    func expectTheOriginsBytes() throws {
        let size = Int64(bytes.count)
        for start in stride(from: 0, to: size, by: 100_003) {
            let range = start..<min(start + 100_003, size)
            let part = try proxy.get(originURL, range: range)
            #expect(part.status == 206)
            #expect(part.body.elementsEqual(bytes[Int(range.lowerBound)..<Int(range.upperBound)]), "\(film.rawValue): wrong bytes in \(range)")
        }
        let whole = try proxy.get(originURL)
        #expect(whole.status == 200)
        // Not an expectation of the arrays: to describe how they differ would take minutes.
        let isEqual = whole.body == bytes
        #expect(isEqual, "\(film.rawValue): the whole differs")
    }

    /// Ends the proxy as a user does.
    func close() throws {
        #expect(try proxy.process.terminate() == .exited(0))
        #expect(proxy.process.stderr == "")
    }
}
