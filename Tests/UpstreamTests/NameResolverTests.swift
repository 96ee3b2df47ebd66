import CachePolicy
import Foundation
import HTTPModel
import Synchronization
import TestSupport
import Testing
import Upstream

/// Looking names up: a few at a time, each once.
@Suite struct NameResolverTests {
    /// A name server that answers when it is told to.
    private final class Names: Sendable {
        struct State: Sendable {
            var asked: [String] = []
            var running = 0
            var mostAtOnce = 0
            var isOpen = false
        }

        let state = Monitor(State())
        let seconds = Atomic<UInt64>(1000)
        let answer: @Sendable (String) -> [String]

        init(isOpen: Bool = false, _ answer: @escaping @Sendable (String) -> [String] = { _ in [] }) {
            self.answer = answer
            state.update { $0.isOpen = isOpen }
        }

        var resolver: NameResolver {
            NameResolver(nanoseconds: { self.seconds.load(ordering: .relaxed) * 1_000_000_000 }) { name in
                self.state.update {
                    $0.asked.append(name)
                    $0.running += 1
                    $0.mostAtOnce = max($0.mostAtOnce, $0.running)
                }
                _ = try? self.state.wait(for: "the name server") { $0.isOpen ? true : nil }
                self.state.update { $0.running -= 1 }
                return self.answer(name)
            }
        }

        func waitUntilAsked(_ count: Int) throws {
            _ = try state.wait(for: "names") { $0.asked.count >= count ? true : nil }
        }
        var asked: [String] { state.read(\.asked) }
    }

    @Test func manyRequestsForANameAreOneLookUp() throws {
        let names = Names { _ in ["127.0.0.1"] }, resolver = names.resolver, answers = Monitor<[[String]]>([])
        for _ in 0..<50 {
            guard
                case .waiting = resolver.resolve(
                    "film.test", waiter: { addresses in answers.update { $0.append(addresses) } })
            else {
                Issue.record("known already")
                return
            }
        }
        names.state.update { $0.isOpen = true }
        try #expect(
            answers.wait(for: "answers") { $0.count == 50 ? $0 : nil } == Array(repeating: ["127.0.0.1"], count: 50))
        #expect(names.asked == ["film.test"])
        #expect(resolver.resolve("film.test") { _ in } == .addresses(["127.0.0.1"]))
    }

    @Test func addressThatConnectedLastStaysFirstUntilItIsForgotten() throws {
        let names = Names(isOpen: true) { _ in ["127.0.0.2", "127.0.0.3", "127.0.0.1"] }, resolver = names.resolver
        let found = Monitor<[[String]]>([])
        func lookUp() throws -> [String] {
            let count = found.read(\.count)
            let known = resolver.resolve("film.test") { addresses in found.update { $0.append(addresses) } }
            if case .addresses(let addresses) = known { return addresses }
            return try found.wait(for: "addresses") { $0.count > count ? $0.last : nil }
        }
        resolver.connected("film.test", at: "127.0.0.1")
        #expect(try lookUp() == ["127.0.0.2", "127.0.0.3", "127.0.0.1"])
        resolver.connected("film.test", at: "127.0.0.9")
        resolver.connected("film.test", at: "127.0.0.1")
        #expect(try lookUp() == ["127.0.0.1", "127.0.0.2", "127.0.0.3"])
        // The answer has expired, and the name is looked up again.
        names.seconds.add(3600, ordering: .relaxed)
        #expect(try lookUp() == ["127.0.0.1", "127.0.0.2", "127.0.0.3"] && names.asked.count == 2)
        resolver.forgetAll()
        #expect(try lookUp() == ["127.0.0.2", "127.0.0.3", "127.0.0.1"])
    }

    @Test func fewNamesAreLookedUpAtATime() throws {
        let names = Names(), resolver = names.resolver, answers = Monitor(0)
        for index in 0..<200 { _ = resolver.resolve("\(index).test") { _ in answers.update { $0 += 1 } } }
        try names.waitUntilAsked(NameResolver.threadLimit)
        #expect(names.asked.count == NameResolver.threadLimit)
        names.state.update { $0.isOpen = true }
        _ = try answers.wait(for: "answers") { $0 == 200 ? true : nil }
        #expect(names.state.read(\.mostAtOnce) <= NameResolver.threadLimit && Set(names.asked).count == 200)
    }

    /// A queue of names that nobody wants any more would hold up those who do.
    @Test func whatNobodyWaitsForIsNotLookedUp() throws {
        let names = Names(), resolver = names.resolver, answers = Monitor<[[String]]>([])
        for index in 0..<NameResolver.threadLimit {
            _ = resolver.resolve("\(index).test") { addresses in answers.update { $0.append(addresses) } }
        }
        try names.waitUntilAsked(NameResolver.threadLimit)
        guard
            case .waiting(let ticket) = resolver.resolve(
                "left.test", waiter: { _ in Issue.record("told though it had left") })
        else { return }
        _ = resolver.resolve("last.test") { addresses in answers.update { $0.append(addresses) } }
        resolver.cancel(ticket)
        names.state.update { $0.isOpen = true }
        _ = try answers.wait(for: "answers") { $0.count == NameResolver.threadLimit + 1 ? true : nil }
        #expect(names.asked.contains("last.test") && !names.asked.contains("left.test"))
    }

    @Test func answerIsRenewedWhileItIsUsed() throws {
        let names = Names(isOpen: true) { _ in ["127.0.0.1"] }, resolver = names.resolver, answers = Monitor(0)
        _ = resolver.resolve("film.test") { _ in answers.update { $0 += 1 } }
        _ = try answers.wait(for: "an answer") { $0 == 1 ? true : nil }
        names.seconds.add(59, ordering: .relaxed)
        #expect(resolver.resolve("film.test") { _ in } == .addresses(["127.0.0.1"]) && names.asked.count == 1)
        names.seconds.add(1, ordering: .relaxed)
        #expect(resolver.resolve("film.test") { _ in } == .addresses(["127.0.0.1"]))
        try names.waitUntilAsked(2)
        _ = try names.state.wait(for: "the end of it") { $0.running == 0 ? true : nil }
    }

    /// What another network's name servers said, and what they are yet to say, is not of this one.
    @Test func forgottenNamesAreLookedUpAgain() throws {
        let names = Names(isOpen: true) { $0 == "none.test" ? [] : ["127.0.0.1"] }, resolver = names.resolver
        let answers = Monitor(0)
        func waits(for name: String) -> Bool {
            if case .waiting = resolver.resolve(name, waiter: { _ in answers.update { $0 += 1 } }) {
                true
            } else {
                false
            }
        }
        func wait(_ count: Int) throws { _ = try answers.wait(for: "answers") { $0 == count ? true : nil } }
        #expect(waits(for: "none.test") && waits(for: "film.test"))
        try wait(2)
        #expect(!waits(for: "none.test") && !waits(for: "film.test"))
        resolver.forgetAll()
        #expect(waits(for: "none.test") && waits(for: "film.test"))
        try wait(4)
        names.state.update { $0.isOpen = false }
        #expect(waits(for: "late.test"))
        try names.waitUntilAsked(5)
        resolver.forgetAll()
        names.state.update { $0.isOpen = true }
        try wait(5)
        #expect(waits(for: "late.test"))
        try wait(6)
    }

    /// A look-up that failed is not repeated at once: for a second, for as long as it took, or for half a minute.
    @Test(arguments: [(0, 1), (10, 10), (100, 30)] as [(UInt64, UInt64)])
    func nameWithoutAddressIsNotAskedForAtOnce(taken: UInt64, believed: UInt64) throws {
        let names = Names(), resolver = names.resolver, answers = Monitor<[[String]]>([])
        let ask = { resolver.resolve("none.test") { addresses in answers.update { $0.append(addresses) } } }
        _ = ask()
        try names.waitUntilAsked(1)
        names.seconds.add(taken, ordering: .relaxed)
        names.state.update { $0.isOpen = true }
        #expect(try answers.wait(for: "an answer") { $0.first } == [])
        names.seconds.add(believed - 1, ordering: .relaxed)
        #expect(ask() == .addresses([]))
        names.seconds.add(1, ordering: .relaxed)
        guard case .waiting = ask() else {
            Issue.record("still believed")
            return
        }
        _ = try answers.wait(for: "another answer") { $0.count == 2 ? true : nil }
        #expect(names.asked.count == 2)
    }

    /// A name server that fails for a while does not take away what plays.
    @Test func renewalThatFailsLeavesWhatIsKnown() throws {
        let found = Mutex(["127.0.0.1"])
        let names = Names(isOpen: true) { _ in found.withLock { $0 } }, resolver = names.resolver, answers = Monitor(0)
        _ = resolver.resolve("film.test") { _ in answers.update { $0 += 1 } }
        _ = try answers.wait(for: "an answer") { $0 == 1 ? true : nil }
        found.withLock { $0 = [] }
        for count in 2...3 {
            names.seconds.add(60, ordering: .relaxed)
            // While the renewal before has not ended, none begins; and one that was in its midst when the time passed
            // is believed for as long as that.
            let end = ContinuousClock.now + .patience
            var passed = 0
            repeat {
                #expect(resolver.resolve("film.test") { _ in } == .addresses(["127.0.0.1"]))
                if passed < 31 {
                    passed += 1
                    names.seconds.add(1, ordering: .relaxed)
                }
                sched_yield()
            } while names.asked.count < count && ContinuousClock.now < end
            #expect(names.asked.count >= count)
        }
    }

    /// A page can name as many hosts as it likes below one whose servers do not answer.
    @Test func zoneThatDoesNotAnswerHoldsUpNoOther() throws {
        let names = Names(), resolver = names.resolver, answers = Monitor<[[String]]>([])
        for index in 0..<200 { _ = resolver.resolve("\(index).dead.test") { _ in } }
        for name in ["film.example.test", "films.test", "nas"] {
            _ = resolver.resolve(name) { addresses in answers.update { $0.append(addresses) } }
        }
        _ = try names.state.wait(for: "the others") {
            Set($0.asked).isSuperset(of: ["film.example.test", "films.test", "nas"]) ? true : nil
        }
        #expect(names.asked.count { $0.hasSuffix(".dead.test") } <= NameResolver.threadsOfAZone)
        names.state.update { $0.isOpen = true }
        try names.waitUntilAsked(203)
        #expect(names.state.read(\.mostAtOnce) <= NameResolver.threadsOfAZone + 3)
    }

    /// A client can name as many zones as it likes, too.
    @Test func oneClientLeavesThreadsToOthers() throws {
        let names = Names(), resolver = names.resolver
        let (greedy, other) = (IPAddress("192.0.2.1"), IPAddress("192.0.2.2")), share = NameResolver.threadLimit / 4 * 3
        for index in 0..<100 { _ = resolver.resolve("\(index).test", for: greedy) { _ in } }
        try names.waitUntilAsked(share)
        _ = resolver.resolve("film.test", for: other) { _ in }
        // One that the first client waits for as well.
        _ = resolver.resolve("99.test", for: other) { _ in }
        try names.waitUntilAsked(share + 2)
        #expect(Set(names.asked.suffix(2)) == ["film.test", "99.test"])
        names.state.update { $0.isOpen = true }
        try names.waitUntilAsked(101)
        _ = try names.state.wait(for: "the end of it") { $0.running == 0 ? true : nil }
        #expect(Set(names.asked).count == 101 && names.asked.count == 101)
    }

    /// The place of one who leaves is not that of the others who wait for the name.
    @Test func nameIsLookedUpForWhomeverStays() throws {
        let names = Names(), resolver = names.resolver, answers = Monitor<[[String]]>([])
        for index in 0..<NameResolver.threadsOfAZone { _ = resolver.resolve("\(index).dead.test") { _ in } }
        try names.waitUntilAsked(NameResolver.threadsOfAZone)
        guard
            case .waiting(let ticket) = resolver.resolve(
                "film.dead.test", for: IPAddress("192.0.2.1"), waiter: { _ in })
        else { return }
        _ = resolver.resolve("film.dead.test", for: IPAddress("192.0.2.2")) { found in
            answers.update { $0.append(found) }
        }
        resolver.cancel(ticket)
        names.state.update { $0.isOpen = true }
        _ = try answers.wait(for: "an answer") { $0.first }
        #expect(names.asked.count { $0 == "film.dead.test" } == 1)
    }

    // MARK: Transfers

    /// As many as there are slots, and more.
    @Test func namesThatNobodyAnswersForTakeNoSlot() throws {
        let origin = try ScriptedOrigin(), media = Media(seed: 3, size: 1000)
        defer { origin.stop() }
        origin.serve("/a.mp4", media)
        let names = Names()
        let upstreams = try Upstreams(
            UpstreamSettings(connectTimeout: 3600), resolver: names.resolver,
            slots: TransferSlots(.init(total: 4, perHost: 4)))
        let dead = (0..<8).map { _ in Recorder() }
        for (index, recorder) in dead.enumerated() {
            upstreams.start(UpstreamRequest(url: "http://\(index).dead.test/"), recorder)
        }
        try names.waitUntilAsked(NameResolver.threadsOfAZone)
        let (recorder, error) = try upstreams.fetch(origin.url("/a.mp4"))
        #expect(error == nil && recorder.received(media) && upstreams.onLoop { $0.openTransfers } == 8)
        names.state.update { $0.isOpen = true }
        for (index, recorder) in dead.enumerated() {
            #expect(try recorder.outcome() == .cannotResolve(host: "\(index).dead.test"))
        }
    }

    /// Of this process.
    private static var threads: Int {
        (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").count) ?? 0
    }

    /// Curl starts a thread for each look-up of its own: none is started here.
    @Test func thousandRequestsForDeadNamesStartFewThreads() throws {
        let names = Names(),
            upstreams = try Upstreams(
                UpstreamSettings(connectTimeout: 3600), resolver: names.resolver,
                slots: TransferSlots(.init(total: 2000, perHost: 2000)))
        let recorders = (0..<1000).map { _ in Recorder() }, before = Self.threads
        for (index, recorder) in recorders.enumerated() {
            upstreams.start(UpstreamRequest(url: "http://dead-\(index % 500).test/"), recorder)
        }
        try names.waitUntilAsked(NameResolver.threadLimit)
        // Tests beside this one have theirs, which come and go; a thousand more would be these.
        #expect(Self.threads < before + 900)
        names.state.update { $0.isOpen = true }
        for (index, recorder) in recorders.enumerated() {
            #expect(try recorder.outcome() == .cannotResolve(host: "dead-\(index % 500).test"))
        }
        #expect(names.asked.count <= 1000)
    }

    @Test(arguments: ["film.test", "Film.Test", "film.test.", "xn--bcher-kva.test"])
    func addressesGoToCurl(host: String) throws {
        let origin = try ScriptedOrigin(), media = Media(seed: 3, size: 1000)
        origin.serve("/a.mp4", media)
        let names = Names(isOpen: true) { _ in ["127.0.0.1"] }
        let upstreams = try Upstreams(resolver: names.resolver)
        for _ in 1...2 {
            let (recorder, error) = try upstreams.fetch("http://\(host):\(origin.port)/a.mp4")
            #expect(error == nil && recorder.received(media))
        }
        #expect(names.asked.count == 1)
    }

    /// The policy is asked about the address that is connected to, wherever it came from.
    @Test func addressThatIsNotPermittedIsRefused() throws {
        let names = Names(isOpen: true) { _ in ["10.0.0.1"] }
        let error = try Upstreams(resolver: names.resolver).fetch("http://film.test/").error
        #expect(error == .addressRefused(host: "film.test", address: "10.0.0.1"))
    }

    @Test func nameThatNobodyAnswersForTimesOut() throws {
        let names = Names(), settings = UpstreamSettings(connectTimeout: 1)
        #expect(
            try Upstreams(settings, resolver: names.resolver).fetch("http://slow.test/").error
                == .timedOut(host: "slow.test", phase: .connect))
        names.state.update { $0.isOpen = true }
    }

    /// Its servers have not been asked: nobody may take the host for one that cannot be reached.
    @Test func nameThatWaitsBehindOthersIsNoFaultOfItsHost() throws {
        let names = Names(), resolver = names.resolver
        for index in 0..<NameResolver.threadsOfAZone { _ = resolver.resolve("\(index).slow.test") { _ in } }
        try names.waitUntilAsked(NameResolver.threadsOfAZone)
        let upstreams = try Upstreams(UpstreamSettings(connectTimeout: 0.05), resolver: resolver)
        let error = try upstreams.fetch("http://film.slow.test/").error
        #expect(
            error == .timedOut(host: "film.slow.test", phase: .names)
                && error?.description.contains("too many names") == true)
        names.state.update { $0.isOpen = true }
    }

    @Test func failureThatIsRememberedIsToldLater() throws {
        let names = Names(isOpen: true), upstreams = try Upstreams(resolver: names.resolver)
        for _ in 1...2 { #expect(try upstreams.fetch("http://none.test/").error == .cannotResolve(host: "none.test")) }
        #expect(names.asked == ["none.test"])
    }
}
