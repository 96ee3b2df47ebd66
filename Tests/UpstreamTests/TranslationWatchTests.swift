import CachePolicy
import EventIO
import Synchronization
import TestSupport
import Testing
import Upstream

/// How the network's prefixes of translation are learnt, from a table in the place of name servers.
@Suite struct TranslationWatchTests {
    /// A name server that says what it is told to, and nothing before.
    private final class Network: Sendable {
        struct State: Sendable {
            var asked: [String] = []
            /// What is said to those who ask, one after the other.
            var answers: [[String]] = []
        }

        let state = Monitor(State())
        let policy: Current<AddressPolicy>
        private let loop: EventLoop
        private let resolver: NameResolver
        private let watch: LoopBound<TranslationWatch>

        init() throws {
            let (loop, policy, state) = (try EventLoop(), Current<AddressPolicy>(try AddressPolicy(allow: [])), state)
            let resolver = NameResolver(nanoseconds: MonotonicClock.nanoseconds) { name in
                state.update { $0.asked.append(name) }
                return (try? state.wait(for: "an answer") { $0.answers.isEmpty ? nil : $0.answers[0] }).map { answer in
                    state.update { $0.answers.removeFirst() }
                    return answer
                } ?? []
            }
            try loop.start()
            (self.loop, self.policy, self.resolver) = (loop, policy, resolver)
            watch = loop.sync { LoopBound(TranslationWatch(policy, resolver, on: loop), on: loop) }
        }

        deinit {
            let watch = watch
            // Whoever waits is let go.
            state.update { $0.answers += [[], [], []] }
            loop.sync { watch.value.stop() }
            loop.stop()
        }

        func change(hasIPv6: Bool = true) {
            let watch = watch
            loop.sync { watch.value.networkChanged(hasIPv6: hasIPv6) }
        }

        func answer(_ addresses: String...) { state.update { $0.answers.append(addresses) } }

        func waitUntilAsked(_ count: Int) throws {
            _ = try state.wait(for: "a question") { $0.asked.count >= count ? true : nil }
        }

        func isPublic(_ text: String) throws -> Bool { policy.value.isPublic(try #require(IPAddress(text))) }

        /// Waits until the policy says so of an address.
        func wait(until text: String, isPublic: Bool) throws {
            let end = ContinuousClock.now + .seconds(60)
            while try self.isPublic(text) != isPublic {
                guard ContinuousClock.now < end else { throw TimedOut() }
                loop.sync {}
            }
        }

        /// Waits until an answer has come, as somebody else who asks gets it.
        func waitForAnswer() throws {
            let isThere = Monitor(false)
            guard
                case .waiting = resolver.resolve(TranslationPrefix.probe, waiter: { _ in isThere.update { $0 = true } })
            else { return }
            _ = try isThere.wait(for: "an answer") { $0 ? true : nil }
            for _ in 1...3 { loop.sync {} }
        }
    }

    private struct TimedOut: Error {}

    private let translated = "2a00:db8:122:344::a00:1"

    @Test func prefixIsLearntWithoutAnybodyWaiting() throws {
        let network = try Network()
        network.change()
        try network.waitUntilAsked(1)
        #expect(try network.isPublic(translated), "nobody has answered")
        network.answer("192.0.0.170", "192.0.0.171", "2a00:db8:122:344::c000:aa", "2a00:db8:122:344::c000:ab")
        try network.wait(until: translated, isPublic: false)
        #expect(network.state.read(\.asked) == ["ipv4only.arpa"])
    }

    @Test func networkThatTranslatesNothingTakesItBack() throws {
        let network = try Network()
        network.change()
        network.answer("192.0.0.170", "2a00:db8:122:344::c000:aa")
        try network.wait(until: translated, isPublic: false)
        network.change()
        network.answer("192.0.0.170", "192.0.0.171")
        try network.wait(until: translated, isPublic: true)
    }

    @Test func withoutAnswerWhatWasKnownHolds() throws {
        let network = try Network()
        network.change()
        network.answer("192.0.0.170", "2a00:db8:122:344::c000:aa")
        try network.wait(until: translated, isPublic: false)
        network.change()
        try network.waitUntilAsked(2)
        network.answer()
        try network.waitForAnswer()
        #expect(try !network.isPublic(translated))
        // At once, as addresses come one after the other: what is remembered of the failure is no answer.
        network.change()
        #expect(try !network.isPublic(translated))
        try network.waitUntilAsked(3)
        network.answer("192.0.0.170", "2a00:db8:122:344::c000:aa")
        network.change(hasIPv6: false)
        // Nothing is reached by IPv6.
        try network.wait(until: translated, isPublic: true)
    }

    /// The answer to a question of the network before is not one of this network.
    @Test func changeWhileItIsAskedAsksAgain() throws {
        let network = try Network()
        network.change()
        try network.waitUntilAsked(1)
        network.change()
        network.answer("192.0.0.170", "2a00:1::c000:aa")
        network.answer("192.0.0.170", "2a00:db8:122:344::c000:aa")
        try network.waitUntilAsked(2)
        try network.wait(until: translated, isPublic: false)
        #expect(try network.isPublic("2a00:1::a00:1"))
    }

    @Test func withoutIPv6NobodyIsAsked() throws {
        let network = try Network()
        network.change(hasIPv6: false)
        #expect(network.state.read(\.asked).isEmpty)
    }
}
