import CachePolicy
import TestSupport
import Testing

private let film = Media(seed: 13, size: 5_000_000)

extension Scenarios {
    /// CONNECT, where it is wanted.
    @Suite struct S11Tunnels {
        /// Plays a scenario in which tunnels may lead to the origin's port.
        private func tunnelled(
            allow: [String] = ["127.0.0.1"], ports: [Int]? = nil, idleTimeout: Double = 300,
            _ story: @escaping @Sendable (Stage) throws -> Void
        ) async throws {
            let origin = try ScriptedOrigin()
            defer { origin.stop() }
            let ports = ports ?? [origin.port]
            try await scenario {
                $0.origin = origin
                $0.allow = allow
                $0.tuning.upstream.tunnelIdleTimeout = idleTimeout
                $0.configure { ($0.tunnels, $0.tunnelPorts) = (true, ports) }
            } _: {
                try story($0)
            }
        }

        private func connect(
            _ stage: Stage, to target: String? = nil, early: String = "", receiveBuffer: Int? = nil
        ) throws -> (client: RawClient, head: RawClient.ResponseHead) {
            let client = try stage.player(receiveBuffer: receiveBuffer)
            try client.send(
                "CONNECT \(target ?? "127.0.0.1:\(stage.origin.port)") HTTP/1.1\r\nHost: any.example\r\n\r\n" + early)
            return (client, try client.readHead(method: "CONNECT"))
        }

        @Test func bytesGoBothWaysAndNothingIsStored() async throws {
            try await tunnelled { stage in
                stage.origin.serve("/film.mp4", film)
                let (client, head) = try connect(stage)
                #expect(
                    head.status == 200 && head.headers["Content-Length"] == nil
                        && head.headers["Transfer-Encoding"] == nil)
                try client.send("GET /film.mp4 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                var received: [UInt8] = []
                while case let piece = try client.readBody(upTo: 1 << 20), !piece.isEmpty { received += piece }
                let body = Array(received.suffix(Int(film.size)))
                #expect(film.difference(body, from: 0..<film.size) == nil)
                #expect(String(decoding: received.prefix(12), as: UTF8.self) == "HTTP/1.1 200")
                try stage.waitForStats("the tunnel's end") { $0[\.openTunnels] == 0 && $0[\.connections] == 0 }
                let stats = try stage.stats
                #expect(stats[\.tunnels] == 1 && stats[\.tunnelBytes] > 5_000_000 && stats[\.upstreamBytes] == 0)
                #expect(stage.dataFiles.isEmpty)
            }
        }

        /// Some clients do not wait for the answer.
        @Test func whatComesWithTheRequestGoesThrough() async throws {
            try await tunnelled { stage in
                stage.origin.serve("/a", bytes: Array("hello".utf8))
                let (client, head) = try connect(
                    stage, early: "GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                #expect(head.status == 200)
                var received: [UInt8] = []
                while case let piece = try client.readBody(upTo: 1 << 20), !piece.isEmpty { received += piece }
                #expect(String(decoding: received, as: UTF8.self).hasSuffix("\r\n\r\nhello"))
            }
        }

        /// The client leaves: so does the proxy.
        @Test func clientThatLeavesEndsTheTunnel() async throws {
            try await tunnelled { stage in
                let (client, head) = try connect(stage)
                #expect(head.status == 200)
                try stage.waitForStats("the tunnel") { $0[\.openTunnels] == 1 }
                client.close()
                try stage.waitForStats("its end") { $0[\.openTunnels] == 0 }
            }
        }

        /// What it had sent waits for a host that does not read, and is given up with the idle tunnel.
        @Test func clientThatLeavesWithBytesUnsentEndsTheTunnel() async throws {
            try await tunnelled(idleTimeout: 3) { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.holdHeads("/film.mp4")
                let (client, head) = try connect(stage, early: "GET /film.mp4 HTTP/1.1\r\nHost: a\r\n\r\n")
                #expect(head.status == 200)
                try stage.origin.waitForRequests("/film.mp4", count: 1)
                // The proxy holds little: the rest stays with the client.
                let piece = [UInt8](repeating: 65, count: 1 << 20)
                let most = 64 << 20
                var sent = 0, refusals = 0
                while sent < most, refusals < 50 {
                    let count = try client.sendWhatFits(piece[...])
                    (sent, refusals) = (sent + count, count == 0 ? refusals + 1 : 0)
                    if count == 0 { _ = try stage.stats }
                }
                #expect(sent < most && refusals == 50)
                #expect(try stage.stats[\.openTunnels] == 1)
                client.close()
                try stage.waitForStats("the tunnel's end") { $0[\.openTunnels] == 0 }
            }
        }

        @Test func tunnelWithoutABytePassingIsClosed() async throws {
            try await tunnelled(idleTimeout: 0.2) { stage in
                let (client, head) = try connect(stage)
                #expect(head.status == 200)
                #expect(try client.isClosedByPeer())
                try stage.waitForStats("its end") { $0[\.openTunnels] == 0 && $0[\.connections] == 0 }
            }
        }

        /// Its connection is full, so that nothing asks for what comes next.
        @Test func tunnelOfAClientThatDoesNotReadIsClosed() async throws {
            try await tunnelled(idleTimeout: 1) { stage in
                let long = Media(seed: 14, size: 200_000_000)
                stage.origin.serve("/long.mp4", long)
                let (client, head) = try connect(stage, receiveBuffer: 8192)
                #expect(head.status == 200)
                try client.send("GET /long.mp4 HTTP/1.1\r\nHost: a\r\n\r\n")
                try stage.waitForStats("bytes") { $0[\.tunnelBytes] > 100_000 }
                try stage.waitForStats("its end") { $0[\.openTunnels] == 0 && $0[\.connections] == 0 }
                // The host waited, too.
                #expect(try stage.stats[\.tunnelBytes] < long.size)
                client.close()
            }
        }

        @Test func privateAddressesAreRefusedAsElsewhere() async throws {
            try await tunnelled(allow: []) { stage in
                for host in ["127.0.0.1", "[::1]", "localhost"] {
                    let (client, head) = try connect(stage, to: "\(host):\(stage.origin.port)")
                    #expect(head.status == 403, "\(host)")
                    #expect(try client.isClosedByPeer())
                }
                #expect(stage.origin.snapshot.requests.isEmpty)
            }
        }

        @Test func otherPortsAreRefused() async throws {
            try await tunnelled(ports: [443]) { stage in
                let (client, head) = try connect(stage)
                #expect(head.status == 403)
                let text = String(decoding: try client.readBody(upTo: 1000), as: UTF8.self)
                let port = stage.origin.port
                #expect(text == "tunnels to port \(port) are not allowed, only to 443: add it to tunnel_ports\n")
            }
        }

        @Test(arguments: [
            "127.0.0.1", "127.0.0.1:", "127.0.0.1:443/x", "user@127.0.0.1:443", "127.0.0.1:99999",
            "https://127.0.0.1:443",
        ])
        func whatIsNoHostAndPortIsRefused(target: String) async throws {
            try await tunnelled { (stage) throws in
                #expect(try connect(stage, to: target).head.status == 400)
            }
        }

        @Test func hostThatDoesNotAnswerIs502() async throws {
            let free = try ScriptedOrigin()
            let port = free.port
            free.stop()
            try await tunnelled(ports: [port]) { (stage) throws in
                #expect(try connect(stage, to: "127.0.0.1:\(port)").head.status == 502)
            }
        }

        /// Only what is mounted is served, tunnels or not.
        @Test func mountsAloneMeansNoTunnels() async throws {
            try await scenario {
                $0.configure { ($0.tunnels, $0.servesAnyOrigin) = (true, false) }
            } _: { (stage) throws in
                #expect(try connect(stage, to: "127.0.0.1:443").head.status == 403)
            }
        }
    }
}
