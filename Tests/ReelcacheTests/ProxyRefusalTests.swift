import Foundation
import TestSupport
import Testing

@testable import Reelcache

/// Programs that embed the proxy set what they like: what cannot work is refused there too.
@Suite struct ProxyRefusalTests {
    private static let mistakes: [(change: @Sendable (inout ProxyConfiguration) -> Void, named: String)] = [
        ({ @Sendable in $0.listen = "nonsense" }, "cannot listen on 'nonsense'"),
        ({ @Sendable in $0.threads = 0 }, "0 threads"),
        ({ @Sendable in $0.maxSize = 15_000_000 }, "15000000 bytes"),
        ({ @Sendable in $0.allow = ["not/valid"] }, "not/valid"),
        ({ @Sendable in $0.certificateFile = "/none.pem" }, "/none.pem"),
        ({ @Sendable in $0.transmission = "pigeon" }, "pigeon"),
    ]

    @Test(arguments: mistakes.indices) func aConfigurationThatCannotWorkIsNamed(index: Int) throws {
        let (change, named) = Self.mistakes[index]
        let directory = try TemporaryDirectory()
        var configuration = ProxyConfiguration()
        configuration.listen = "127.0.0.1:0"
        configuration.cacheDirectory = directory.file("cache")
        change(&configuration)
        let error = try #require(throws: ProxyError.self) { try Proxy(configuration) }
        #expect(error.description.contains(named), "\(error)")
    }

    @Test func allowIsChangedAsAWholeOrNotAtAll() throws {
        let directory = try TemporaryDirectory()
        var configuration = ProxyConfiguration()
        configuration.listen = "127.0.0.1:0"
        configuration.cacheDirectory = directory.file("cache")
        let origin = try ScriptedOrigin()
        origin.serve("/a.mp4", Media(seed: 1, size: 1000))
        let proxy = try Proxy(configuration)
        defer { try? proxy.stop(graceSeconds: 0) }
        func status() throws -> Int { try RawClient.get(port: proxy.port, path: ProxyProcess.target(origin.url("/a.mp4"))).status }

        #expect(throws: ProxyError.self) { try proxy.setAllow(["127.0.0.1", "not/valid"]) }
        #expect(try status() == 403)
        try proxy.setAllow(["127.0.0.1"])
        #expect(try status() == 200)
    }
}
