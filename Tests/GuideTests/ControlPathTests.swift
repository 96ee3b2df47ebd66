import Foundation
import TestSupport
import Testing

/// `docs/programs/http-api.md` describes each path of the interface, each method there, and each parameter: what a
/// running proxy says of itself.
@Suite struct ControlPathTests {
    private static let path = "docs/programs/http-api.md"
    private let cache: TemporaryDirectory
    private let proxy: ProxyProcess

    init() throws {
        cache = try TemporaryDirectory()
        proxy = try ProxyProcess(cacheDirectory: cache.path)
    }

    @Test func eachPathMethodAndParameterIsDescribed() async throws {
        try await blocking {
            let sections = try Self.sections()
            let paths = try paths()
            #expect(paths.count >= 8)
            for path in paths {
                for method in try methods(of: path) {
                    let section = sections.filter {
                        ["\(method) \(path)", "\(method) \(path)?url=URL"].contains($0.key)
                    }
                    #expect(!section.isEmpty, "\(Self.path) has no heading `\(method) \(path)`")
                    for parameter in try parameters(of: path, method) {
                        #expect(
                            section.values.contains { $0.contains("`\(parameter)") },
                            "\(Self.path) says nothing of `\(parameter)` under \(method) \(path)")
                    }
                }
            }
            for page in ["GET /stats", "GET /metrics", "GET /healthz"] {
                #expect(sections[page] != nil, "\(Self.path): \(page)")
            }
        }
    }

    /// What it says, in the place of a resource that is not there: `there is nothing at ...; the paths are PATH, PATH, ...`
    private func paths() throws -> [String] {
        let text = try answer("GET", "/api/v1/nothing").text
        return text.components(separatedBy: "paths ").last?.matches(of: /\/api\/v1[a-z\/]*/).map { String($0.0) } ?? []
    }

    /// The methods of a path, without those that every path has.
    private func methods(of path: String) throws -> [String] {
        let allowed = try #require(try answer("OPTIONS", path).field("Allow"))
        return allowed.components(separatedBy: ", ").filter { !["HEAD", "OPTIONS"].contains($0) }
    }

    private func parameters(of path: String, _ method: String) throws -> [String] {
        let text = try answer(method, path + "?nonsense=1").text
        let list = text.components(separatedBy: "parameters are ").last?.prefix { $0 != ";" && $0 != "\"" } ?? ""
        return list.components(separatedBy: ", ").filter { $0 != "secrets" }
    }

    private func answer(_ method: String, _ target: String) throws -> Answer {
        let token = try String(contentsOfFile: cache.file("control-token"), encoding: .utf8)
            .trimmingCharacters(in: .whitespacesAndNewlines)
        let outcome = try ChildProcess.run(
            "/usr/bin/env",
            ["curl", "-s", "-i", "-X", method, "-H", "Authorization: Bearer \(token)", proxy.baseURL + target])
        return Answer(outcome.stdout)
    }

    private struct Answer {
        let text: String

        init(_ text: String) { self.text = text }

        func field(_ name: String) -> String? {
            text.split(whereSeparator: \.isNewline).first { $0.hasPrefix(name + ": ") }.map {
                String($0.dropFirst(name.count + 2))
            }
        }
    }

    /// What stands below each heading that is in code, such as `GET /api/v1/cache`.
    private static func sections() throws -> [String: String] {
        var (sections, heading) = ([String: String](), "")
        for line in try Documents.text(path).split(separator: "\n") {
            if let match = line.wholeMatch(of: /#+ `([A-Z]+ .*)`/) {
                heading = String(match.1)
            } else {
                sections[heading, default: ""] += line + "\n"
            }
        }
        return sections
    }
}
