import Foundation
import TestSupport
import Testing

/// The packages on fresh Debian systems, which systemd boots. `scripts/test-packages` builds both and runs this suite;
/// elsewhere it is skipped.
@Suite(.enabled(if: Packages.built != nil, "scripts/test-packages runs these"), .serialized)
struct PackageTests {
    /// Whose blocks with the marker `packages` are run here.
    static let pages = [
        "docs/guide/installing.md", "docs/guide/troubleshooting.md", "docs/operators/service.md",
    ]

    private let packages: Packages
    private let install = "sudo apt-get install -y ./reelcache_*.deb >/dev/null\n"

    init() throws { packages = try #require(Packages.built) }

    /// A page's own blocks, in order.
    private func blocks(of path: String) throws -> [MarkdownPage.Block] {
        try Documents.page(path).blocks.filter { try $0.language == "sh" && RunMarker($0.marker) == .packages }
    }

    /// Runs commands on a system with the package and a checkout in the home directory.
    private func run(_ texts: [String], files: [String]? = nil) async throws -> [GuideWorld.BlockResult] {
        let checkout = try TemporaryDirectory()
        try Checkout.copy(to: checkout.file("reelcache"), with: packages.shared)
        let system = GuideWorld.FreshSystem(
            root: packages.complete, files: (files ?? [packages.deb]) + [checkout.file("reelcache")],
            variables: ["REELCACHE": "/home/reader/reelcache/" + Checkout.program])
        let blocks = texts.enumerated().map { index, text in
            (block: MarkdownPage.Block(language: "sh", line: index, text: text, marker: nil), proxyRuns: false)
        }
        return try await blocking { try GuideWorld.run(blocks, on: system) }
    }

    private func expectSuccess(_ results: [GuideWorld.BlockResult], of count: Int, _ name: String) {
        #expect(results.count == count, "\(name): the system ended before all was run")
        for result in results where result.status != "0" {
            Issue.record(
                "\(name), block \(result.line): \(result.command)\nfailed (\(result.status)):\n\(result.output)")
        }
    }

    @Test(arguments: ["docs/guide/installing.md"])
    func commandsOfThePageWork(path: String) async throws {
        let commands = try blocks(of: path).map(\.text)
        expectSuccess(try await run(commands), of: commands.count, path)
    }

    /// Pages for those who have installed it, each with what runs before its commands.
    @Test(arguments: [
        ("docs/guide/troubleshooting.md", "systemctl --user enable --now reelcache\n"),
        ("docs/operators/service.md", ""),
    ])
    func commandsOfAnInstalledProgramWork(path: String, start: String) async throws {
        let commands = try blocks(of: path).map(\.text)
        expectSuccess(try await run([install + start] + commands), of: commands.count + 1, path)
    }

    /// Waits for the proxy of a service.
    private static let ready = #"""
        ready() {
            for i in {1..600}; do
                ! curl -sf http://127.0.0.1:7335/stats >/dev/null || return 0
                read -rt 0.1 <> <(:) || :
            done
            return 1
        }

        """#

    /// An update while a player reads and the household's cache is in use.
    @Test func updateKeepsTheCacheOfTheProxyThatRuns() async throws {
        let results = try await run(
            [
                "sudo apt-get install -y ./reelcache_*-1_*.deb >/dev/null\nsudo systemctl enable --now reelcache\n",
                Self.ready + #"""
                    ready
                    film=http://127.0.0.1:7335/https/example.org/film.mp4
                    curl -sf -o whole "$film"
                    before="$(systemctl show -P MainPID reelcache)"
                    # A player that reads slowly meanwhile; the proxy lets it end, or cuts it: no wrong byte arrives.
                    curl -s --limit-rate 200K -o slow "$film" &
                    sudo apt-get install -y ./reelcache_*-2_*.deb >/dev/null
                    wait || true
                    [[ -s slow ]]
                    cmp -n "$(stat -c %s slow)" slow whole
                    after="$(systemctl show -P MainPID reelcache)"
                    [[ "$after" != "$before" ]]
                    ready
                    curl -sf -D head -o again "$film"
                    cmp whole again
                    grep -i '^cache-status:.*hit' head
                    """#,
                Self.ready + #"""
                    sudo apt-get remove -y reelcache >/dev/null
                    if systemctl is-active --quiet reelcache; then exit 1; fi
                    [[ ! -e /usr/bin/reelcache && ! -e /usr/lib/systemd/system/reelcache.service ]]
                    sudo test -e /var/cache/reelcache/index.sqlite
                    [[ -e /etc/reelcache/reelcache.yaml ]]
                    # Installed again, it has what it had.
                    sudo apt-get install -y ./reelcache_*-2_*.deb >/dev/null
                    sudo systemctl start reelcache
                    ready
                    curl -sf -D head -o again "$film"
                    cmp whole again
                    grep -i '^cache-status:.*hit' head
                    """#,
                #"""
                sudo apt-get purge -y reelcache >/dev/null
                left="$(sudo find / -xdev -name '*reelcache*' -not -path '/home/*' -not -path '/proc/*' -not -path '/tmp/*' -not -path '/run/*' -not -path '/var/log/*')"
                [[ -z "$left" ]] || { echo "$left"; exit 1; }
                """#,
            ], files: [packages.deb, packages.laterDeb])
        expectSuccess(results, of: 4, "update")
    }

    /// Runs a program on the system that has what the package says that it needs, and no more.
    /// - Parameters:
    ///   - install: shell commands that install it; `$root` is that system's directory, which stays as it is.
    ///   - program: its path there.
    /// - Returns: what it prints as its version, after which it has served.
    private func tryOnABareSystem(_ install: String, program: String) throws -> String {
        let work = try TemporaryDirectory()
        let outcome = try ChildProcess.run(
            "/usr/bin/unshare",
            [
                "--mount", "--pid", "--net", "--fork", "--kill-child", "/bin/bash", "-ec",
                """
                mount -t tmpfs tmpfs "$2"
                mkdir "$2/over" "$2/work" "$2/root"
                root="$2/root"
                mount -t overlay overlay -o "lowerdir=$1,upperdir=$2/over,workdir=$2/work" "$root"
                mount -t proc proc "$root/proc"
                ip link set lo up
                \(install)
                chroot "$root" \(program) --version --verbose
                chroot "$root" \(program) serve --cache-dir /var/tmp/cache >"$2/log" 2>&1 &
                server=$!
                for i in {1..600}; do
                    ! curl -sf http://127.0.0.1:7335/healthz >/dev/null || break
                    read -rt 0.1 <> <(:) || :
                done
                curl -sf http://127.0.0.1:7335/healthz >/dev/null || { cat "$2/log" >&2; exit 1; }
                kill -TERM "$server"
                wait "$server"
                """,
                "bash", packages.bare, work.path,
            ])
        #expect(outcome.exit == .exited(0) && outcome.stderr == "", "\(outcome)")
        return outcome.stdout
    }

    @Test func programAloneRunsOnABareSystem() throws {
        let version = try tryOnABareSystem(
            "install -m 755 '\(packages.alone)' \"$root/usr/local/bin/reelcache\"", program: "/usr/local/bin/reelcache")
        let row = try #require(version.split(separator: "\n").last { $0.hasPrefix("needs ") }, "\(version)")
        let needs = row.split(separator: " ").dropFirst()
        // But for libcurl, each Debian system has them.
        let allowed = [
            "libcurl.so.4", "libidn2.so.0", "libxxhash.so.0", "libstdc++.so.6", "libm.so.6", "libgcc_s.so.1",
            "libc.so.6",
        ]
        #expect(
            !needs.isEmpty && needs.allSatisfy { allowed.contains(String($0)) || $0.hasPrefix("ld-linux-") },
            "\(needs)")
    }

    @Test func packageDependsOnAllThatTheProgramNeeds() throws {
        let version = try tryOnABareSystem(
            "cp '\(packages.deb)' \"$root/tmp/reelcache.deb\"\nchroot \"$root\" dpkg -i /tmp/reelcache.deb >/dev/null",
            program: "/usr/bin/reelcache")
        let head = try ChildProcess.run("/usr/bin/env", ["git", "-C", Documents.root.path, "rev-parse", "HEAD"])
        let commit = head.stdout.split(separator: "\n").first ?? ""
        #expect(version.contains("\ncommit    \(commit)"), "\(version)")
    }

    @Test func manualPagesAndCompletionsAreFound() async throws {
        let results = try await run([
            install + #"""
                man -w reelcache reelcache-prefetch reelcache.yaml >/dev/null
                [[ "$(man reelcache-prefetch | wc -l)" -gt 20 ]]
                """#,
            #"""
            bash -ic 'source /usr/share/bash-completion/bash_completion; __load_completion reelcache; complete -p reelcache' 2>&1 | grep reelcache
            [[ "$(fish -c 'complete -C "reelcache pre"')" == prefetch* ]]
            zsh -ic 'autoload -U compinit; compinit -D; print $_comps[reelcache]' | grep _reelcache
            """#,
        ])
        expectSuccess(results, of: 2, "manual pages and completions")
    }
}

/// What `scripts/test-packages` has built.
private struct Packages {
    /// The package, and the same one with a later version number.
    let deb: String, laterDeb: String
    /// The program with all inside, and the one that packages contain.
    let alone: String, shared: String
    /// Fresh systems: `bare` with the libraries that `alone` needs, `complete` with all that `deb` depends on.
    let bare: String, complete: String

    /// Nil where the variables of that script are missing.
    static let built: Packages? = {
        let environment = ProcessInfo.processInfo.environment
        guard let deb = environment["REELCACHE_DEB"], let later = environment["REELCACHE_LATER_DEB"],
            let alone = environment["REELCACHE_ALONE"], let shared = environment["REELCACHE_SHARED"],
            let systems = environment["REELCACHE_SYSTEMS"]
        else { return nil }
        return Packages(
            deb: deb, laterDeb: later, alone: alone, shared: shared, bare: systems + "/bare",
            complete: systems + "/complete")
    }()
}

/// The sources, without what was built from them.
private enum Checkout {
    /// Where `scripts/build-release` puts the program.
    static let program = ".build-release/shared/reelcache"

    /// - Parameter built: the program, in place of one that would be built there.
    static func copy(to path: String, with built: String) throws {
        let outcome = try ChildProcess.run(
            "/bin/bash",
            [
                "-ec",
                """
                mkdir "$2"
                cd "$1"
                git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$2"
                install -D "$3" "$2/$4"
                """,
                "bash", Documents.root.path, path, built, program,
            ])
        guard outcome.exit == .exited(0) else { throw WorldError(description: outcome.stderr) }
    }
}
