import Foundation
import Logging
import Testing
import TestSupport

@testable import Configuration
@testable import Reelcache

/// How what is read again takes effect.
@Suite struct RunningSettingsTests {
    /// Between two steps a new mount would be served without its rule, and a private origin through a mount to come.
    @Test func whatDecidesAboutRequestsChangesInOneStep() throws {
        let directory = try TemporaryDirectory()
        func write(_ text: String) throws {
            try Data(text.utf8).write(to: URL(fileURLWithPath: directory.file("r.yaml")))
        }
        try write("listen: 127.0.0.1:0\ncache_dir: \(directory.file("cache"))\n")
        var sources = SettingSources(environment: [:])
        sources.configFlag = directory.file("r.yaml")
        let settings = try sources.read()
        let logger = Logger(label: "reelcache") { _ in SwiftLogNoOpLogHandler() }
        let proxy = try Proxy(settings.proxy, logger: logger)
        defer { try? proxy.stop(grace: .zero) }
        let running = RunningSettings(
            settings, from: sources, proxy: proxy, logLevel: AdjustableLogLevel(.error))
        let before = proxy.cache.engine.policy.version

        try write(
            "listen: 127.0.0.1:0\ncache_dir: \(directory.file("cache"))\nmounts: {/tv/: https://o.example/}\nany_origin: false\noffline: true\nfill: read\n"
                + "rules: [{bypass: true}]\nallow: [nas.local]\n")
        running.reload()
        #expect(proxy.cache.engine.policy.version == before + 1)
        let policy = proxy.cache.engine.policy.value
        #expect(
            policy.mounts.map(\.path) == ["/tv/"] && !policy.servesAnyOrigin && policy.isOffline && policy.fill == .read
                && policy.rules.count == 1)

        running.reload()
        #expect(proxy.cache.engine.policy.version == before + 1)
        try write("listen: 127.0.0.1:0\ncache_dir: \(directory.file("cache"))\nallow: [nas.local]\n")
        running.reload()
        #expect(proxy.cache.engine.policy.version == before + 2)
        #expect(
            proxy.cache.engine.policy.value.mounts == [] && proxy.cache.engine.policy.value.servesAnyOrigin
                && proxy.cache.engine.policy.value.rules == [])
    }
}
