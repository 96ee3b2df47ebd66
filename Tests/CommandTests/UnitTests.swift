import Foundation
import TestSupport
import Testing

/// `config/reelcache.service`
@Suite struct UnitTests {
    private static let path = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()
        .appendingPathComponent("config/reelcache.service").path

    /// The values of each key, of all sections.
    private static func settings() throws -> [String: [String]] {
        let lines = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n").filter {
            !$0.hasPrefix("#") && $0.contains("=")
        }
        let pairs = lines.map {
            $0.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        }
        return Dictionary(pairs.map { ($0[0], [$0[1]]) }) { $0 + $1 }
    }

    @Test func wrongSettingsDoNotStartItForEver() throws {
        let cache = try TemporaryDirectory()
        let outcome = try ReelcacheCommand.run(["serve", "--listen", "nowhere", "--cache-dir", cache.path])
        #expect(outcome.exit == .exited(2))
        let settings = try Self.settings()
        #expect(settings["Restart"] == ["on-failure"] && settings["RestartPreventExitStatus"] == ["2"])
    }

    @Test func itMayDoNoMoreThanItHasTo() throws {
        let settings = try Self.settings()
        for key in [
            "NoNewPrivileges", "RestrictNamespaces", "RestrictSUIDSGID", "LockPersonality", "MemoryDenyWriteExecute",
        ] {
            #expect(settings[key] == ["yes"], "\(key)")
        }
        #expect(settings["RestrictAddressFamilies"] == ["AF_INET AF_INET6 AF_UNIX AF_NETLINK"])
        #expect(settings["SystemCallFilter"]?.first == "@system-service mincore")
    }

    /// systemd.exec(5): a user's manager has neither the capabilities that these take away nor, by default, namespaces.
    /// With the former the unit ends at its start (218/CAPABILITIES), and the latter do nothing.
    @Test func itStartsUnderAUsersManager() throws {
        let settings = try Self.settings()
        for key in [
            "CapabilityBoundingSet", "PrivateDevices", "ProtectKernelModules", "ProtectKernelLogs", "ProtectClock",
        ] {
            #expect(settings[key] == nil, "\(key) ends the unit at its start")
        }
        for key in settings.keys where key.hasPrefix("Protect") || key.hasPrefix("Private") {
            Issue.record("\(key) does nothing here")
        }
    }
}
