import CachePolicy
import EventIO
import Glibc
import TestSupport
import Testing
import Upstream

@Suite struct AddressTests {
    private let origin: ScriptedOrigin

    init() throws {
        origin = try ScriptedOrigin()
        origin.serve("/a.mp4", Media(seed: 3, size: 1000))
    }

    @Test func loopbackIsRefusedUnlessAllowed() throws {
        let (recorder, error) = try Upstreams(allow: []).fetch(origin.url("/a.mp4"))
        #expect(error == .addressRefused(host: "127.0.0.1", address: "127.0.0.1"))
        #expect(error?.isTransient == false)
        #expect(recorder.heads.isEmpty)
        #expect(origin.snapshot.connectionCount == 0)
    }

    @Test(arguments: ["[::ffff:127.0.0.1]", "2130706433", "0x7f.1"])
    func loopbackInDisguiseIsRefused(_ host: String) throws {
        guard case .addressRefused = try Upstreams(allow: []).fetch(origin.url("/a.mp4", host: host)).error else {
            Issue.record("\(host) was not refused")
            return
        }
        #expect(origin.snapshot.connectionCount == 0)
    }

    @Test func mappedLoopbackIsAllowedWithLoopback() throws {
        #expect(
            try Upstreams(allow: ["127.0.0.1"]).fetch(origin.url("/a.mp4", host: "[::ffff:127.0.0.1]")).error == nil)
    }

    @Test func allowedNameMayStandForAnyAddress() throws {
        #expect(try Upstreams(allow: ["localhost"]).fetch(origin.url("/a.mp4", host: "localhost")).error == nil)
    }

    // localhost is ::1 too, which nobody allowed: its other address is taken.
    @Test func nameWithOneAllowedAddressConnectsThere() throws {
        #expect(try Upstreams(allow: ["127.0.0.1"]).fetch(origin.url("/a.mp4", host: "localhost")).error == nil)
    }

    /// It may be back in a moment, whatever else its name stands for.
    @Test(arguments: [["10.0.0.1", "127.0.0.1"], ["127.0.0.1", "10.0.0.1"]])
    func permittedAddressThatCannotBeReachedIsNotRefused(addresses: [String]) throws {
        let (free, port) = CannedOrigin.listen()
        close(free)
        let upstreams = try Upstreams(resolver: .standIn(addresses))
        let error = try upstreams.fetch("http://nas.test:\(port)/a.mp4").error
        guard case .cannotConnect(host: "nas.test", _) = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(error?.isTransient == true)
    }

    /// curl connects to the next address only when it is called again.
    @Test(arguments: ["127.0.0", "10.0.0"])
    func addressesThatFailDoNotHoldUpTheNext(network: String) throws {
        let dead = (2...9).map { "\(network).\($0)" }
        // Each failure would take a part of it.
        let upstreams = try Upstreams(
            allow: ["127.0.0.0/8"], UpstreamSettings(connectTimeout: 2), resolver: .standIn(dead + ["127.0.0.1"]))
        #expect(try upstreams.fetch(origin.url("/a.mp4", host: "film.test")).error == nil)
    }

    @Test func addressThatDoesNotAnswerLeavesTimeForTheNext() throws {
        let silent = try SilentPort(0x7F00_0002, port: origin.port)
        let upstreams = try Upstreams(
            allow: ["127.0.0.0/8"], UpstreamSettings(connectTimeout: 2), resolver: .standIn(["127.0.0.2", "127.0.0.1"]))
        let error = try upstreams.fetch(origin.url("/a.mp4", host: "film.test")).error
        withExtendedLifetime(silent) { #expect(error == nil) }
    }

    /// Otherwise each connection would wait for the address that is dead, as name servers give the same order again.
    @Test func addressThatConnectedLastIsTriedFirst() throws {
        let origin = try CannedOrigin("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        let upstreams = try Upstreams(allow: ["127.0.0.0/8"], resolver: .standIn(["127.0.0.2", "127.0.0.1"]))
        let made = Monitor(0)
        upstreams.onLoop { client in
            client.makeSocket = { domain, type, number in
                made.update { $0 += 1 }
                return Glibc.socket(domain, type, number)
            }
        }
        let url = "http://film.test:\(origin.port)/"
        try #expect([url, url].map { try upstreams.fetch($0).recorder.heads.first?.status } == [200, 200])
        #expect(made.read(\.self) == 3)
    }

    @Test func everyHopIsChecked() throws {
        origin.script("/hop") { $0.redirect = origin.url("/a.mp4") }
        let (recorder, error) = try Upstreams(allow: ["localhost"]).fetch(origin.url("/hop", host: "localhost"))
        #expect(error == .addressRefused(host: "127.0.0.1", address: "127.0.0.1"))
        #expect(recorder.heads.isEmpty)
        #expect(origin.requestCount("/a.mp4") == 0)
    }

    // The connection that "localhost" was allowed is not one for "127.0.0.1".
    @Test func openConnectionOfAnotherNameIsNotBorrowed() throws {
        let upstreams = try Upstreams(allow: ["localhost"])
        #expect(try upstreams.fetch(origin.url("/a.mp4", host: "localhost")).error == nil)
        #expect(
            try upstreams.fetch(origin.url("/a.mp4")).error == .addressRefused(host: "127.0.0.1", address: "127.0.0.1"))
    }

    @Test func whatIsAllowedLaterIsFetchedFrom() throws {
        let upstreams = try Upstreams(allow: [])
        upstreams.policy.value = try AddressPolicy(allow: ["127.0.0.1"])
        #expect(try upstreams.fetch(origin.url("/a.mp4")).error == nil)
    }

    // The connection is still open, and would be used again.
    @Test func whatIsNoLongerAllowedIsNotAskedOnAnOpenConnection() throws {
        let upstreams = try Upstreams(allow: ["127.0.0.1"])
        for _ in 1...2 { #expect(try upstreams.fetch(origin.url("/a.mp4")).error == nil) }
        #expect(origin.snapshot.connectionCount == 1)

        upstreams.policy.value = try AddressPolicy(allow: [])

        #expect(
            try upstreams.fetch(origin.url("/a.mp4")).error == .addressRefused(host: "127.0.0.1", address: "127.0.0.1"))
        #expect(origin.requestCount("/a.mp4") == 2)
    }

    @Test func machinesOwnNetworkIsRefusedWhateverItsRange() throws {
        let upstreams = try Upstreams(allow: [])
        let own = try #require(IPAddress("8.8.8.8"))
        upstreams.policy.change { $0.local = LocalNetworks([(own, 24)]) }
        #expect(
            try upstreams.fetch("http://8.8.8.9:1/a.mp4").error == .addressRefused(host: "8.8.8.9", address: "8.8.8.9"))
    }

    // In a process of its own: the environment belongs to all tests of this one.
    @Test func proxyOfTheEnvironmentIsNotUsed() async {
        await #expect(processExitsWith: .success) {
            let origin = try ScriptedOrigin(), proxy = try ScriptedOrigin()
            origin.serve("/a.mp4", Media(seed: 3, size: 1000))
            setenv("http_proxy", proxy.url(""), 1)
            try #require(try Upstreams().fetch(origin.url("/a.mp4")).error == nil)
            try #require(proxy.snapshot.connectionCount == 0)
        }
    }
}
