import Foundation
import TestSupport
import Testing

/// Addresses of this machine that are of a public range, in a network namespace of their own.
@Suite struct NetworkTests {
    /// Whether such a namespace can be made, and has a loopback that can be given addresses.
    private static let isPossible =
        (try? ChildProcess.run(
            "/usr/bin/env",
            ["unshare", "-n", "sh", "-c", "ip link set lo up && ip addr add 8.8.8.8/24 dev lo && curl --version"]))?
        .exit == .exited(0)

    /// Asks the proxy for something at each address in turn, while addresses come and go.
    private static let script = """
        set -e
        ip link set lo up
        ip addr add 8.8.8.8/24 dev lo
        "$0" serve --listen 127.0.0.1:7999 --cache-dir "$1" >/dev/null 2>&1 &
        until curl -s http://127.0.0.1:7999/healthz >/dev/null; do :; done
        ask() { curl -s -o /dev/null -w "$1 %{http_code}\\n" "http://127.0.0.1:7999/http/$1:1/film.mp4"; }
        ask 8.8.8.8
        ask 8.8.8.9
        ip addr add 9.9.9.9/24 dev lo
        until [ "$(ask 9.9.9.9)" = "9.9.9.9 403" ]; do :; done
        ask 9.9.9.10
        ip addr del 8.8.8.8/24 dev lo
        until [ "$(ask 8.8.8.8)" = "8.8.8.8 502" ]; do :; done
        curl -s "http://127.0.0.1:7999/http/9.9.9.9:1/film.mp4"
        kill $!
        wait $! || true
        """

    @Test(.enabled(if: isPossible, "no network namespace can be made here, or ip or curl is missing"))
    func machinesOwnAddressesAreRefusedAlsoThoseThatComeLater() throws {
        let cache = try TemporaryDirectory()
        let outcome = try ChildProcess.run(
            "/usr/bin/env", ["unshare", "-n", "sh", "-c", Self.script, try ReelcacheCommand.path(), cache.path],
            environment: ReelcacheCommand.neutral, within: .seconds(90))
        let lines = outcome.stdout.split(separator: "\n").map(String.init)
        #expect(lines.prefix(3) == ["8.8.8.8 403", "8.8.8.9 403", "9.9.9.10 403"], "\(outcome)")
        #expect(
            lines.last?.hasPrefix("9.9.9.9 is at the private address 9.9.9.9; to fetch from it, ") == true, "\(outcome)"
        )
    }
}
