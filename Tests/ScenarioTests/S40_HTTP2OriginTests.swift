import CachePolicy
import Foundation
import Reelcache
import TestSupport
import Testing

private let film = Media(seed: 40, size: 12_000_000)
private let song = Media(seed: 41, size: 100_000)

extension Scenarios {
    /// An origin that speaks HTTP/2 over TLS, as most do: nginx with an authority of the test.
    @Suite(.enabled(if: PassedSocket.hasNginx, "nginx is not installed")) struct S40HTTP2Origin {
        /// - Parameter settings: directives of its server.
        private func origin(
            _ settings: String = "", fill: FillMode? = nil,
            _ story: @escaping @Sendable (Stage, SecureOrigin) throws -> Void
        ) async throws {
            let origin = try SecureOrigin(settings)
            try await scenario {
                if let fill { $0.fill(fill) }
                $0.configure {
                    $0.certificateFile = origin.certificate
                    // Each loop has connections of its own.
                    $0.threads = 1
                }
            } _: { stage in
                try story(stage, origin)
            }
        }

        @Test func seeksBringTheBytesOfTheirPlaces() async throws {
            try await origin { stage, origin in
                for start in stride(from: 11_000_000 as Int64, to: 0, by: -1_700_000) {
                    let (player, head) = try origin.player(on: stage, "/film.mp4", range: "bytes=\(start)-")
                    #expect(head.status == 206)
                    let bytes = try player.readBody(exactly: 50_000)
                    #expect(film.difference(bytes, from: start..<start + 50_000) == nil)
                    player.close()
                }
                try stage.catchUp()
                #expect(try origin.waitForAnswers(2).allSatisfy { $0.version == "HTTP/2.0" && $0.status == 206 })
            }
        }

        /// nginx sends GOAWAY with the last answer that a connection may have (RFC 9113 §6.8).
        @Test func connectionsAreUsedUntilTheyGoAway() async throws {
            try await origin("keepalive_requests 3;") { stage, origin in
                for index in 0..<9 {
                    let answer = try origin.get("/song.mp3?\(index)", on: stage)
                    #expect(answer.status == 200 && song.difference(answer.body, from: 0..<song.size) == nil)
                    try stage.catchUp()
                }
                let answers = try origin.waitForAnswers(9)
                #expect(Set(answers.map(\.connection)).count == 3, "\(answers)")
            }
        }

        /// The process that sends is told to end: it sends GOAWAY, and finishes the answer.
        @Test func anAnswerOutlastsGoAway() async throws {
            try await origin("limit_rate 8m;") { stage, origin in
                let (player, _) = try origin.player(on: stage, "/film.mp4")
                let first = try player.readBody(exactly: 1_000_000)
                origin.reload()
                let rest = try player.readBody(exactly: Int(film.size) - first.count)
                #expect(film.difference(first + rest, from: 0..<film.size) == nil)
                #expect(try origin.waitForAnswers(1).map(\.status) == [200])
            }
        }

        /// What broke off is requested again from where it ended, on another connection.
        @Test func aCutIsContinued() async throws {
            try await origin(fill: .read) { stage, origin in
                // More than all buffers hold: while its player reads no further, the answer cannot end.
                let long = Media(seed: 42, size: 48_000_000)
                try origin.add("long.mp4", long)
                let (player, _) = try origin.player(on: stage, "/long.mp4", receiveBuffer: 16_384)
                let first = try player.readBody(exactly: 1_000_000)
                try origin.killWorker()
                let rest = try player.readBody(exactly: Int(long.size) - first.count)
                #expect(long.difference(first + rest, from: 0..<long.size) == nil)
                let last = try #require(try origin.waitForAnswers(1).last)
                #expect(last.status == 206 && last.bytes < long.size)
            }
        }

        /// Its transfer is held back, and has a connection of its own: others of the same origin continue.
        @Test func aPausedPlayerStopsNobodyElse() async throws {
            try await origin { stage, origin in
                let (paused, _) = try origin.player(on: stage, "/film.mp4", receiveBuffer: 4096)
                let first = try paused.readBody(exactly: 100_000)
                try stage.waitForStats("a transfer that is held back") { $0[\.pausedTransfers] == 1 }
                for index in 0..<4 {
                    let answer = try origin.get("/song.mp3?\(index)", on: stage)
                    #expect(song.difference(answer.body, from: 0..<song.size) == nil)
                }
                let rest = try paused.readBody(exactly: Int(film.size) - first.count)
                #expect(film.difference(first + rest, from: 0..<film.size) == nil)
                let answers = try origin.waitForAnswers(5), own = answers.filter { $0.path == "/film.mp4" }
                #expect(own.map(\.status) == [200])
                #expect(answers.count { $0.connection == own[0].connection } == 1)
            }
        }
    }
}

/// nginx on a port of its own, with `film.mp4` and `song.mp3`.
private final class SecureOrigin: Sendable {
    typealias Answer = (connection: String, version: String, path: String, status: Int64, bytes: Int64)

    private let directory: TemporaryDirectory
    private let socket: PassedSocket
    private let process: ChildProcess
    var certificate: String { directory.file("certificate") }

    init(_ settings: String) throws {
        directory = try TemporaryDirectory()
        socket = try PassedSocket()
        let made = try ChildProcess.run(
            "/usr/bin/openssl",
            [
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                "-keyout", directory.file("key"), "-out", directory.file("certificate"), "-subj", "/CN=reelcache test",
                "-addext", "subjectAltName=IP:127.0.0.1",
            ])
        try #require(made.exit == .exited(0), "\(made.stderr)")
        let configuration = directory.file("configuration")
        try Self.configuration(directory, port: socket.port, settings)
            .write(toFile: configuration, atomically: true, encoding: .utf8)
        process = try socket.startNginx(configuration: configuration)
        for (name, media) in [("film.mp4", film), ("song.mp3", song)] { try add(name, media) }
    }

    private static func configuration(_ directory: TemporaryDirectory, port: Int, _ settings: String) -> String {
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map { "\($0)_temp_path \(directory.file("temporary"));" }.joined(separator: " ")
        return """
            daemon off; worker_processes 1; pid \(directory.file("pid")); \(geteuid() == 0 ? "user root;" : "")
            events { worker_connections 256; }
            http {
                log_format line '$connection $server_protocol $uri $status $body_bytes_sent';
                access_log \(directory.file("log")) line; \(temporary)
                server {
                    listen 127.0.0.1:\(port) ssl http2; root \(directory.path); \(settings)
                    ssl_certificate \(directory.file("certificate")); ssl_certificate_key \(directory.file("key"));
                }
            }
            """
    }

    /// Serves one more file.
    func add(_ name: String, _ media: Media) throws {
        try Data(media.allBytes).write(to: URL(fileURLWithPath: directory.file(name)))
    }

    private func target(_ path: String) -> String { "/https/127.0.0.1:\(socket.port)\(path)" }

    func get(_ path: String, on stage: Stage) throws -> RawClient.Response {
        try RawClient.get(port: stage.proxy.port, path: target(path))
    }

    func player(on stage: Stage, _ path: String, range: String? = nil, receiveBuffer: Int? = nil) throws
        -> (RawClient, RawClient.ResponseHead)
    {
        let player = try stage.player(receiveBuffer: receiveBuffer)
        try player.send(player.request(target(path), range: range))
        return (player, try player.readHead())
    }

    /// The answers that it has ended, at least so many.
    func waitForAnswers(_ count: Int) throws -> [Answer] {
        try eventually("\(count) answers") {
            let lines = try String(contentsOfFile: directory.file("log"), encoding: .utf8).split(separator: "\n")
            let answers = lines.map { $0.split(separator: " ").map(String.init) }.map {
                Answer($0[0], $0[1], $0[2], Int64($0[3]) ?? 0, Int64($0[4]) ?? 0)
            }
            return answers.count >= count ? answers : nil
        }
    }

    /// Has the process that sends finish, and another one take its place.
    func reload() { process.signal(SIGHUP) }

    func killWorker() throws {
        let worker = try eventually("a worker") { ProcessTable.children(of: process.pid).first }
        kill(worker, SIGKILL)
    }
}
