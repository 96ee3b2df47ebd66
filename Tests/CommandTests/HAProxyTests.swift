import Foundation
import TestSupport
import Testing

/// HAProxy before a proxy, as the guide has it.
@Suite(.enabled(if: HAProxy.isExpected, "not installed: apt install haproxy"))
struct HAProxyTests {
    private let directory: TemporaryDirectory
    private let origin: ScriptedOrigin
    private let film = Media(seed: 32, size: 300_000)

    init() throws {
        directory = try TemporaryDirectory()
        origin = try ScriptedOrigin()
        origin.serve("/film.mp4", film)
    }

    private func serve(_ arguments: [String]) throws -> ProxyProcess {
        try ProxyProcess(
            cacheDirectory: directory.file("cache"),
            arguments: ["--trusted", "127.0.0.2", "--access-log", directory.file("access.log")] + arguments)
    }

    private func logged() throws -> [[String: Any]] {
        try String(contentsOfFile: directory.file("access.log"), encoding: .utf8).split(separator: "\n").map {
            try #require(JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
        }
    }

    /// With the PROXY protocol, and with fields.
    @Test(arguments: [
        (["--proxy-protocol"], "send-proxy-v2", ""), (["--proxy-protocol"], "send-proxy", ""),
        ([], "", "http-request del-header Forwarded\n option forwardfor"),
        (
            [], "",
            "http-request set-header Forwarded \"for=%[src];proto=http\"\n http-request del-header X-Forwarded-For"
        ),
    ])
    func clientsAreServedByTheirOwnAddress(flags: [String], server: String, option: String) throws {
        let proxy = try serve(flags)
        let balancer = try HAProxy(
            in: directory, backend: "\(option)\n server node 127.0.0.1:\(proxy.port) source 127.0.0.2 \(server)")
        let target = ProxyProcess.target(origin.url("/film.mp4"))
        let client = try RawClient(port: balancer.port)
        // One connection: kept, then with several requests in one go.
        #expect(film.difference(try client.get(target).body, from: 0..<film.size) == nil)
        let ranges = (0..<20).map { Int64($0) * 1000..<Int64($0) * 1000 + 500 }
        let answers = try client.pipeline(ranges.map { client.request(target, range: $0.rangeField) })
        for (range, answer) in zip(ranges, answers) {
            #expect(answer.status == 206 && film.difference(answer.body, from: range) == nil)
        }
        // A client's own claims are worth nothing.
        #expect(try client.get(target, headers: [("X-Forwarded-For", "192.0.2.99")]).status == 200)
        // Players of this machine need no balancer.
        #expect(try proxy.get("/healthz").text == "ok\n")
        #expect(try proxy.process.terminate() == .exited(0))
        let clients = try logged().filter { ($0["url"] as? String)?.hasSuffix("/film.mp4") == true }
            .compactMap { $0["client"] as? String }
        #expect(clients.count == 22)
        #expect(clients.allSatisfy { $0.hasPrefix("127.0.0.1") }, "\(Set(clients))")
    }

    /// A proxy that is stopped under load: HAProxy sends its requests to the other one, and no client sees a failure.
    @Test func stoppedProxyFailsNoRequest() throws {
        let first = try serve(["--proxy-protocol"])
        let second = try ProxyProcess(
            cacheDirectory: directory.file("other"), arguments: ["--trusted", "127.0.0.2", "--proxy-protocol"])
        // The one that is left must not be down because it connects slowly for once.
        let check = "source 127.0.0.2 send-proxy-v2 check inter 100 fall 3 rise 1"
        let balancer = try HAProxy(
            in: directory,
            backend: """
                option httpchk GET /healthz
                 option redispatch
                 server a 127.0.0.1:\(first.port) \(check)
                 server b 127.0.0.1:\(second.port) \(check)
                """)
        let target = ProxyProcess.target(origin.url("/film.mp4"))
        let isOver = Monitor(false), served = Monitor(0)
        let clients = try (0..<4).map { _ in
            try Background {
                let client = try RawClient(port: balancer.port)
                while !isOver.read({ $0 }) {
                    let response = try client.get(target, range: "bytes=1000-1999")
                    guard response.status == 206, film.difference(response.body, from: 1000..<2000) == nil else {
                        throw DeadlinePassed(what: "an answer", instead: "\(response.head)")
                    }
                    served.update { $0 += 1 }
                }
            }
        }
        try served.wait(for: "answers") { $0 > 100 ? () : nil }
        #expect(try first.process.terminate() == .exited(0))
        let before = served.read { $0 }
        try served.wait(for: "answers of the other") { $0 > before + 100 ? () : nil }
        isOver.update { $0 = true }
        for client in clients { try client.value() }
    }
}

/// A running HAProxy that forwards to what a test names. It ends with this object.
private final class HAProxy: Sendable {
    private static let path = "/usr/sbin/haproxy"

    /// Whether tests with it are to run: where it is missing they are skipped, but fail under `CI=true`.
    static var isExpected: Bool {
        access(path, X_OK) == 0 || ProcessInfo.processInfo.environment["CI"] == "true"
    }

    var port: Int { socket.port }
    private let socket: PassedSocket
    private let process: ChildProcess

    /// - Parameter backend: lines of the section.
    init(in directory: TemporaryDirectory, backend: String) throws {
        socket = try PassedSocket()
        let file = directory.file("haproxy.cfg")
        let configuration = """
            global
             maxconn 200
            defaults
             mode http
             option http-keep-alive
             timeout connect 10s
             timeout client 60s
             timeout server 60s
             timeout check 60s
            frontend players
             bind fd@\(PassedSocket.inherited)
             default_backend nodes
            backend nodes
             \(backend)

            """
        try configuration.write(toFile: file, atomically: true, encoding: .utf8)
        process = try socket.hand(to: Self.path, ["-db", "-f", file])
        try eventually("HAProxy", instead: process.stderr) { () throws -> Bool in
            // The socket takes connections without it, too.
            if process.exit != nil { throw DeadlinePassed(what: "HAProxy", instead: process.stderr) }
            return (try? RawClient.get(port: port, path: "/healthz").status) == 200
        }
    }
}
