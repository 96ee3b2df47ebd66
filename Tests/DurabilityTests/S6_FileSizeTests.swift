import Foundation
import TestSupport
import Testing

extension Durability {
    /// A limit on how long files may become (`ulimit -f`, `LimitFSIZE=`).
    @Suite struct FileSizeTests {
        private static let limit = 4 << 20
        private let short = Film(path: "/short.mp4", media: Media(seed: 60, size: 1_000_000))
        private let long = Film(path: "/long.mp4", media: Media(seed: 61, size: 9_000_000))

        /// What is longer plays past the cache, with and without an announced length; the proxy lives, and what fits is
        /// cached.
        @Test func whatIsLongerThanFilesMayBePassesByTheCache() async throws {
            try await blocking {
                let origin = try Durability.origin([short, long])
                origin.serve("/stream.mp4", long.media)
                origin.script("/stream.mp4") { $0.chunkedEncoding = true }
                let directory = try TemporaryDirectory()
                let proxy = try ProxyProcess(cacheDirectory: directory.path)
                let limited = try ChildProcess.run(
                    "/usr/bin/prlimit", ["--pid", "\(proxy.process.pid)", "--fsize=\(Self.limit)"])
                #expect(limited.exit == .exited(0))

                for path in ["/long.mp4", "/stream.mp4", "/long.mp4"] {
                    let response = try proxy.get(origin.url(path))
                    #expect(
                        response.status == 200
                            && long.media.difference(response.body, from: 0..<long.media.size) == nil, "\(path)")
                }
                for _ in 0..<2 {
                    #expect(try proxy.get(origin.url(short.path)).body == short.media.bytes(0..<short.media.size))
                }
                #expect(origin.requestCount(short.path) == 1)
                #expect(origin.requestCount(long.path) == 2)
                #expect(try proxy.process.terminate() == .exited(0))
            }
        }
    }
}
