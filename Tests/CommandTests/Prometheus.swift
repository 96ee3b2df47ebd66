import Foundation
import TestSupport

/// A real Prometheus that scrapes a proxy four times a second, with the alerting rules of this repository. It ends when
/// this object goes.
final class Prometheus {
    /// Where the configuration for Prometheus and Grafana is.
    static let configuration = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().appendingPathComponent("config")
    static let rules = configuration.appendingPathComponent("prometheus/reelcache-alerts.yaml").path

    /// Whether tests with it are to run: where it is missing they are skipped, but fail under `CI=true`.
    static let isExpected = ProcessInfo.processInfo.environment["CI"] == "true" || isInstalled
    private static let isInstalled: Bool = {
        let outcome = try? ChildProcess.run("/usr/bin/env", ["sh", "-c", "command -v prometheus promtool"])
        return outcome?.exit == .exited(0)
    }()

    private let directory: TemporaryDirectory
    private let process: ChildProcess
    private let port: Int

    /// Starts it and waits until it serves.
    /// - Parameter token: the file with the token to send.
    init(scraping proxy: ProxyProcess, token: String? = nil) throws {
        directory = try TemporaryDirectory()
        let authorization = token.map { "\n    authorization: {credentials_file: \"\($0)\"}" } ?? ""
        try """
        global: {scrape_interval: 250ms, scrape_timeout: 250ms, evaluation_interval: 250ms}
        rule_files: ["\(Self.rules)"]
        scrape_configs:
          - job_name: reelcache\(authorization)
            static_configs: [{targets: ["127.0.0.1:\(proxy.port)"]}]
        """.write(toFile: directory.file("prometheus.yml"), atomically: true, encoding: .utf8)
        process = try ChildProcess(
            "/usr/bin/env",
            [
                "prometheus", "--config.file", directory.file("prometheus.yml"), "--storage.tsdb.path",
                directory.file("data"), "--web.listen-address", "127.0.0.1:0",
            ])
        let line = try process.waitForLine(containing: "TLS is disabled", on: .stderr)
        guard let match = line.firstMatch(of: /address=127\.0\.0\.1:(\d+)/), let port = Int(match.1) else {
            throw DeadlinePassed(what: "its port", instead: line)
        }
        self.port = port
        try process.waitForLine(containing: "Server is ready to receive web requests", on: .stderr)
    }

    deinit { _ = try? process.killNow() }

    /// What its API has at a path below `/api/v1/`.
    func get(_ path: String) throws -> [String: Any] {
        let body = try RawClient.get(port: port, path: "/api/v1/" + path).body
        let answer = try JSONSerialization.jsonObject(with: Data(body)) as? [String: Any]
        guard let answer, answer["status"] as? String == "success" else {
            throw DeadlinePassed(what: "success of \(path)", instead: String(decoding: body, as: UTF8.self))
        }
        return answer["data"] as? [String: Any] ?? [:]
    }

    /// The values of an expression at this moment.
    func values(_ expression: String) throws -> [Double] {
        let allowed = CharacterSet.alphanumerics
        let query = expression.addingPercentEncoding(withAllowedCharacters: allowed) ?? ""
        let result = try get("query?query=\(query)")["result"] as? [[String: Any]] ?? []
        return result.compactMap { ($0["value"] as? [Any])?.last as? String }.compactMap(Double.init)
    }

    /// Waits until an expression has these values.
    func wait(for expression: String, _ wanted: [Double]) throws {
        try eventually("\(expression) == \(wanted)", instead: "\(try values(expression))") {
            try values(expression) == wanted
        }
    }
}
