import CachePolicy
import EventIO
import Glibc
import TestSupport
import Testing
import Upstream

/// Connections for tunnels.
@Suite struct DialTests {
    /// Dials, and waits for what comes of it.
    private func dial(_ host: String, port: Int, _ upstreams: Upstreams) throws -> Result<Int32, UpstreamError> {
        let outcome = Monitor<Result<Int32, UpstreamError>?>(nil)
        let dial = upstreams.onLoop { client in
            LoopBound(
                client.dial(host, port: UInt16(clamping: port)) { result in outcome.update { $0 = result } },
                on: client.loop)
        }
        return try withExtendedLifetime(dial) { try outcome.wait(for: "a connection") { $0 } }
    }

    /// The address of the other end.
    private func peer(of socket: Int32) -> UInt32 {
        var (address, length) = (sockaddr_in(), socklen_t(MemoryLayout<sockaddr_in>.size))
        withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { _ = getpeername(socket, $0, &length) }
        }
        return UInt32(bigEndian: address.sin_addr.s_addr)
    }

    private func expectConnection(
        _ outcome: Result<Int32, UpstreamError>, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let socket = try outcome.get()
        #expect(peer(of: socket) == 0x7F00_0001, sourceLocation: sourceLocation)
        close(socket)
    }

    @Test(arguments: ["127.0.0.1", "film.test"]) func hostIsConnectedTo(host: String) throws {
        let origin = try CannedOrigin(nil)
        try expectConnection(dial(host, port: origin.port, Upstreams(resolver: .standIn(["127.0.0.1"]))))
    }

    /// As with a route of IPv6 that leads nowhere: the first address takes all the time that there is.
    @Test func addressThatDoesNotAnswerDoesNotHoldUpTheNext() throws {
        let origin = try CannedOrigin(nil)
        let silent = try SilentPort(0x7F00_0002, port: origin.port)
        let upstreams = try Upstreams(
            allow: ["127.0.0.1", "127.0.0.2"], UpstreamSettings(connectTimeout: 60),
            resolver: .standIn(["127.0.0.2", "127.0.0.1"]))
        try withExtendedLifetime(silent) { try expectConnection(dial("film.test", port: origin.port, upstreams)) }
    }

    /// A name with many silent addresses would take as many descriptors (RFC 8305 §5 asks for no more than a few).
    @Test func fewAddressesAreTriedAtATime() throws {
        let origin = try CannedOrigin(nil)
        let silent = try (2...6).map { try SilentPort(0x7F00_0000 + $0, port: origin.port) }
        let upstreams = try Upstreams(
            allow: ["127.0.0.0/8"], resolver: .standIn((2...6).map { "127.0.0.\($0)" } + ["127.0.0.1"]))
        // A number that was closed may be somebody else's by now.
        let inode = { @Sendable (socket: Int32) -> ino_t in
            var known = stat()
            return fstat(socket, &known) == 0 ? known.st_ino : 0
        }
        let open = Monitor((sockets: [Int32: ino_t](), most: 0))
        upstreams.onLoop { client in
            client.makeSocket = { domain, type, number in
                let made = Glibc.socket(domain, type, number)
                open.update { open in
                    open.sockets = open.sockets.filter { inode($0.key) == $0.value }
                    open.sockets[made] = inode(made)
                    open.most = max(open.most, open.sockets.count)
                }
                return made
            }
        }
        try withExtendedLifetime(silent) { try expectConnection(dial("film.test", port: origin.port, upstreams)) }
        // The next is there before the oldest is dropped.
        #expect(open.read(\.most) == 4)
    }

    @Test func addressThatAnswersAfterAllIsTakenWhereTheNextOneFails() throws {
        let origin = try CannedOrigin(nil)
        // Nobody listens there.
        let upstreams = try Upstreams(
            allow: ["127.0.0.1", "127.0.0.2"], resolver: .standIn(["127.0.0.2", "10.0.0.1", "127.0.0.1"]))
        try expectConnection(dial("film.test", port: origin.port, upstreams))
    }

    @Test func whatCannotBeConnectedToSaysWhy() throws {
        let free = try HeldPort(), port = free.port
        defer { withExtendedLifetime(free) {} }
        #expect(
            try dial("none.test", port: port, Upstreams(resolver: .standIn([])))
                == .failure(.cannotResolve(host: "none.test")))
        #expect(
            try dial("film.test", port: port, Upstreams(resolver: .standIn(["10.0.0.1"])))
                == .failure(.addressRefused(host: "film.test", address: "10.0.0.1")))
        for addresses in [["127.0.0.1"], ["10.0.0.1", "127.0.0.1"], ["127.0.0.1", "10.0.0.1"]] {
            guard
                case .failure(.cannotConnect) = try dial(
                    "film.test", port: port, Upstreams(resolver: .standIn(addresses)))
            else {
                Issue.record("\(addresses): not what became of a port where nobody listens")
                return
            }
        }
        let upstreams = try Upstreams()
        upstreams.onLoop { client in
            client.makeSocket = { _, _, _ in
                errno = EMFILE
                return -1
            }
        }
        #expect(try dial("127.0.0.1", port: port, upstreams) == .failure(.outOfDescriptors(host: "127.0.0.1")))
    }

    /// The look-up is that of all transfers: whoever gives up takes his name out of its line.
    @Test func cancelledDialIsNotLookedUp() throws {
        let names = Monitor((asked: [String](), isOpen: false))
        let resolver = NameResolver(nanoseconds: MonotonicClock.nanoseconds) { name in
            names.update { $0.asked.append(name) }
            _ = try? names.wait(for: "the name server") { $0.isOpen ? true : nil }
            return []
        }
        for index in 0..<NameResolver.threadsOfAZone { _ = resolver.resolve("\(index).slow.test") { _ in } }
        _ = try names.wait(for: "names") { $0.asked.count == NameResolver.threadsOfAZone ? true : nil }
        let upstreams = try Upstreams(resolver: resolver)
        upstreams.onLoop { client in
            client.dial("left.slow.test", port: 443) { _ in Issue.record("told though it was cancelled") }.cancel()
        }
        let last = Monitor(false)
        _ = resolver.resolve("last.slow.test") { _ in last.update { $0 = true } }
        names.update { $0.isOpen = true }
        _ = try last.wait(for: "the last name") { $0 ? true : nil }
        #expect(!names.read(\.asked).contains("left.slow.test"))
    }

    @Test func familiesTakeTurns() throws {
        let order = { (list: [String]) in list.compactMap { IPAddress($0) }.alternatingFamilies.map(\.description) }
        #expect(order(["::1", "::2", "::3", "1.1.1.1", "2.2.2.2"]) == ["::1", "1.1.1.1", "::2", "2.2.2.2", "::3"])
        #expect(order(["1.1.1.1", "2.2.2.2"]) == ["1.1.1.1", "2.2.2.2"] && order([]) == [])
    }
}
