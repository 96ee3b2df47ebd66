import Foundation
import Testing
import TestSupport

@testable import Configuration

/// `config/reelcache.yaml`, which people copy, says what is true.
@Suite struct SampleFileTests {
    private let text: String

    init() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        text = try String(contentsOf: root.appendingPathComponent("config/reelcache.yaml"), encoding: .utf8)
    }

    /// Prose follows `# ` or more spaces, a setting `#`; what belongs to a rule, `#` and two spaces.
    private var uncommented: String { text.replacing(/(?m)^#(?=(  )?[a-z]|-)/, with: "") }

    @Test func asItIsItChangesNothing() throws {
        let read = try settings(text)
        for setting in Setting.all { #expect(setting.isEqual(read, Settings()), "\(setting.key)") }
    }

    @Test func itHasEveryKeyInTheOrderOfTheTable() throws {
        let keys = uncommented.split(separator: "\n").compactMap { $0.firstMatch(of: /^([a-z_]+):/)?.1 }.map(
            String.init)
        #expect(keys == Setting.all.map(\.key))
    }

    /// Where the default is a value, the file shows that value; elsewhere it says what the default is.
    @Test func whatItShowsIsTheDefault() throws {
        let shown = try settings(uncommented)
        for setting in Setting.all
        where ![
            "names", "trusted", "max_connections", "max_connections_per_client", "max_requests_per_client",
            "cache_dir", "allow", "mounts", "cache", "default_ttl", "max_body", "max_buffered", "ignore_reload",
            "web_origins",
            "secret_parameters",
            "threads",
            "ca_file", "access_log", "player", "resolvers", "on_completed", "on_failed", "rules", "schedule",
            "download_cap", "parents",
            "upstream_proxy", "upstream_proxy_except",
        ].contains(setting.key) {
            #expect(setting.isEqual(shown, Settings()), "\(setting.key): \(setting.texts(in: shown))")
        }
        for standard in [
            "max_connections", "max_connections_per_client", "max_requests_per_client",
            "cache_dir", "cache", "default_ttl", "max_body", "max_buffered", "ignore_reload", "secret_parameters",
            "threads", "ca_file",
            "access_log", "player",
            "schedule", "download_cap",
        ].compactMap({
            Setting[$0]?.standard
        }) {
            #expect(text.contains("Default: \(standard)."))
        }
        #expect(
            Settings().proxy.names == [] && Settings().proxy.allow == [] && Settings().proxy.mounts == [:]
                && Settings().proxy.rules == [] && Settings().proxy.webOrigins == [])
        #expect(text.split(separator: "Default: none.").count == 13)
    }

    @Test func itHasEveryKeyOfARule() throws {
        let shown = try settings(uncommented).proxy.rules
        for key in RuleKey.all {
            #expect(text.contains("#   \(key.name) "), "\(key.name) has no words")
            #expect(shown.contains { RuleKey.text($0).contains("\(key.name): ") }, "\(key.name) has no example")
        }
    }

    @Test func itSaysWhatNeedsARestart() {
        let keys = Setting.all.filter(\.needsRestart).map(\.key)
        let prose = text.replacing("\n# ", with: " ")
        #expect(
            prose.contains(
                "Changes of \(keys.dropLast().joined(separator: ", ")) and \(keys.last ?? "") take effect after a restart."
            ))
    }
}
