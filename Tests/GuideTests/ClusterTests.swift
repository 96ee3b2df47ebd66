import Foundation
import TestSupport
import Testing

/// Several machines behind a balancer: the files of `config/cluster`, and what `docs/operators/cluster.md` says of
/// them.
@Suite(.serialized) struct ClusterTests {
    private static let configurations = Documents.root.appendingPathComponent("config/cluster").path

    /// Why this machine cannot have machines of its own with balancers; nil if it can.
    private static let obstacle: String? = {
        let test =
            "for program in haproxy nginx python3 ip nsenter; do command -v $program >/dev/null || { echo $program; exit 1; }; done; "
            + "mount --make-rprivate / && ip link add name test type bridge"
        let outcome = try? ChildProcess.run(
            "/usr/bin/env", ["unshare", "--net", "--mount", "--pid", "--fork", "bash", "-c", test])
        if outcome?.exit == .exited(0) { return nil }
        return "no network namespaces can be made here, or a program is missing: \(outcome?.stdout ?? "unshare")"
    }()

    private static let isExpected = obstacle == nil || GuideWorld.isCI

    /// Each limit of each scenario: see `scripts/cluster --help`.
    @Test(.enabled(if: Self.isExpected, "\(Self.obstacle ?? "")"))
    func clusterIsOneCache() async throws {
        let outcome = try await blocking {
            try ChildProcess.run(
                Documents.root.appendingPathComponent("scripts/cluster").path, ["all", "--short"],
                environment: ReelcacheCommand.neutral.merging(["REELCACHE": try ReelcacheCommand.path()]) { $1 },
                within: .seconds(1800))
        }
        #expect(outcome.exit == .exited(0), "\(outcome.stdout)\(outcome.stderr)")
    }

    /// The players of the scenarios would notice a wrong byte.
    @Test(.enabled(if: Self.isExpected, "\(Self.obstacle ?? "")"))
    func wrongBytesAreNoticed() async throws {
        let outcome = try await blocking {
            try ChildProcess.run(
                Documents.root.appendingPathComponent("scripts/cluster").path, ["pause", "--short", "--wrong"],
                environment: ReelcacheCommand.neutral.merging(["REELCACHE": try ReelcacheCommand.path()]) { $1 },
                within: .seconds(600))
        }
        #expect(outcome.exit == .exited(1), "\(outcome.stdout)\(outcome.stderr)")
        #expect(outcome.stdout.contains(/status +1 +<= 0 +MISSED/), "\(outcome.stdout)\(outcome.stderr)")
    }

    @Test(
        .enabled(if: Self.isExpected, "\(Self.obstacle ?? "")"),
        arguments: [
            ["haproxy", "-c", "-f", "haproxy.cfg"],
            // What it would open is not this machine's.
            [
                "unshare", "--mount", "sh", "-c",
                "mount -t tmpfs test /var/log/nginx && mount -t tmpfs test /run && nginx -t -c \"$PWD/nginx.conf\"",
            ],
        ])
    func balancerAcceptsItsConfiguration(command: [String]) throws {
        let outcome = try ChildProcess.run("/usr/bin/env", ["--chdir=\(Self.configurations)"] + command)
        #expect(outcome.exit == .exited(0), "\(outcome.stdout)\(outcome.stderr)")
        for stream in [outcome.stdout, outcome.stderr] {
            #expect(!stream.localizedCaseInsensitiveContains("warning"), "\(stream)")
        }
    }

    @Test(arguments: ["node.yaml", "parent.yaml"])
    func programAcceptsItsConfiguration(name: String) throws {
        let outcome = try ReelcacheCommand.run(["config", "check", "\(Self.configurations)/\(name)"])
        #expect(outcome.exit == .exited(0), "\(outcome.stdout)\(outcome.stderr)")
    }

    /// What a parameter's name scatters in one file, it does in all.
    @Test func filesLeaveOutTheSameParameters() throws {
        let nodes = try ["node.yaml", "parent.yaml"].map {
            try #require(try text($0).firstMatch(of: /ignore_query: \[([a-z, ]+)\]/)).1.components(separatedBy: ", ")
        }
        let haproxy = try #require(try text("haproxy.cfg").firstMatch(of: /&\)\(([a-z|]+)\)\(=/)).1
        let nginx = try text("nginx.conf").matches(of: /\|\.\*&\)([a-z]+)=/).map { String($0.1) }
        #expect(nodes[0] == nodes[1])
        #expect(nodes[0] == haproxy.components(separatedBy: "|"))
        #expect(nodes[0] == nginx)
    }

    private func text(_ name: String) throws -> String { try Documents.text("config/cluster/\(name)") }

    static let hasSystemd = FileManager.default.isExecutableFile(atPath: "/usr/bin/systemd-analyze")

    @Test(.enabled(if: Self.hasSystemd || GuideWorld.isCI, "systemd-analyze is missing"))
    func systemdAcceptsTheUnits() throws {
        let directory = try TemporaryDirectory()
        let program = directory.file("bin/reelcache")
        try FileManager.default.createDirectory(atPath: directory.file("bin"), withIntermediateDirectories: true)
        try FileManager.default.createSymbolicLink(atPath: program, withDestinationPath: try ReelcacheCommand.path())
        let units = ["reelcache-node.service", "reelcache-node.socket"]
        for unit in units {
            try text(unit).replacingOccurrences(of: "@PREFIX@", with: directory.path)
                .write(toFile: directory.file(unit), atomically: true, encoding: .utf8)
        }
        let outcome = try ChildProcess.run(
            "/usr/bin/systemd-analyze", ["verify", "--man=no"] + units.map(directory.file))
        #expect(outcome.exit == .exited(0), "\(outcome.stdout)\(outcome.stderr)")
        #expect(!outcome.stderr.contains("reelcache-node"), "\(outcome.stderr)")
    }

    /// The household's proxy, whose socket has the same port, must not come back beside a node.
    @Test func nodeTakesThePlaceOfTheHouseholdsProxyAndItsSocket() throws {
        let node = try text("reelcache-node.service"), socket = try text("reelcache-node.socket")
        #expect(node.contains("\nConflicts=reelcache.service reelcache.socket\n"))
        #expect(socket.contains("\nConflicts=reelcache.socket\n"))
        // As the nodes' configuration has it.
        #expect(try text("node.yaml").contains("\nlisten: \":7335\"\n") && socket.contains("\nListenStream=7335\n"))
        let guide = try Documents.text("docs/operators/cluster.md")
        #expect(guide.contains("cp reelcache-node.service reelcache-node.socket /etc/systemd/system/"))
    }
}
