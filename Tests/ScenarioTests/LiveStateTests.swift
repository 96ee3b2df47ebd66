import Activity
import CachePolicy
import Downloads
import EventIO
import Synchronization
import Testing

@testable import ControlAPI
@testable import Reelcache

/// Not the one that the modules under test count in debug builds.
typealias Mutex = Synchronization.Mutex

/// The live state, with loops and a clock of the test's own.
@Suite struct LiveStateTests {
    private final class Desk: Sendable {
        private struct State {
            var samples = ActivitySamples()
            var seconds: UInt64 = 1000
            var isHeld = false
            var held: [@Sendable () -> Void] = []
        }

        private let state = Mutex(State())
        let policy = Current(ProxyPolicy())

        func make() -> LiveState {
            LiveState(
                collect: { [self] then in then(state.withLock { $0.samples }) }, downloads: DownloadSnapshots(),
                policy: policy,
                metrics: ProxyMetrics(),
                statistics: {
                    StatsSnapshot(ProxyMetrics(), version: "1", uptimeSeconds: 0)
                },
                perform: { [self] work in
                    let runs = state.withLock { state in
                        if state.isHeld { state.held.append(work) }
                        return !state.isHeld
                    }
                    if runs { work() }
                    return true
                },
                moment: { [self] in
                    let seconds = state.withLock { $0.seconds }
                    return .init(instant: seconds * 1_000_000_000, time: Int64(seconds))
                })
        }

        func pass() { state.withLock { $0.seconds += 1 } }

        func play(_ names: String..., query: String = "") {
            let samples = names.map { name in
                let url = "https://example.org/\(name)\(query)"
                let key = PlaySample.Key(player: PlayerID(address: "::1", agent: nil), whole: CacheKey(text: url))
                var sample = PlaySample(key, url: url, began: 0, lastUse: 0)
                sample.requests = 1
                return sample
            }
            state.withLock { $0.samples.plays = samples }
        }

        /// Keeps the threads that may block busy.
        func hold() { state.withLock { $0.isHeld = true } }

        func release() {
            let held = state.withLock { state in
                defer { (state.isHeld, state.held) = (false, []) }
                return state.held
            }
            for work in held { work() }
        }
    }

    private static func names(_ page: LiveState.Page?) throws -> [String]? {
        try page.map { page in
            let line = try #require(page.text.bytes.split(separator: UInt8(ascii: "\n")).last).dropFirst("data: ".count)
            return try ControlJSON.decode(NowReport.self, from: line).plays.map(\.title)
        }
    }

    /// While somebody else watches, too.
    @Test func aWatcherGetsNoStateOfAFormerOne() throws {
        let desk = Desk(), live = desk.make()
        _ = live.watch(showsSecrets: false) {}
        let former = live.watch(showsSecrets: true) {}
        desk.play("a")
        live.refresh()
        #expect(try Self.names(live.page(showsSecrets: true)) == ["a"])
        live.unwatch(former)
        desk.play()
        desk.pass()
        live.refresh()
        #expect(try Self.names(live.page(showsSecrets: false)) == [])

        _ = live.watch(showsSecrets: true) {}
        #expect(live.page(showsSecrets: true) == nil)
        live.refresh()
        #expect(try Self.names(live.page(showsSecrets: true)) == [], "without waiting for a change")
    }

    /// Although nothing has happened since.
    @Test func aSecretIsMaskedOnceItIsOne() throws {
        let desk = Desk(), live = desk.make(), mask = try URLMask(adding: ["viewer"])
        for showsSecrets in [false, true] { _ = live.watch(showsSecrets: showsSecrets) {} }
        desk.play("a", query: "?viewer=s3cret")
        live.refresh()
        func hasSecret(_ showsSecrets: Bool) throws -> Bool {
            String(decoding: try #require(live.page(showsSecrets: showsSecrets)).text.bytes, as: UTF8.self)
                .contains("s3cret")
        }
        #expect(try hasSecret(false))
        desk.policy.change { $0.mask = mask }
        desk.pass()
        live.refresh()
        #expect(try !hasSecret(false) && hasSecret(true))
    }

    /// The last watcher leaves while the state is written for it.
    @Test func aStateThatNobodyWatchesIsNotKept() throws {
        let desk = Desk(), live = desk.make()
        let watcher = live.watch(showsSecrets: false) {}
        desk.hold()
        live.refresh()
        live.unwatch(watcher)
        desk.release()
        _ = live.watch(showsSecrets: false) {}
        #expect(live.page(showsSecrets: false) == nil)
    }

    /// So there is one at a time, and none overtakes another.
    @Test func aLookJoinsTheCollectionThatRuns() throws {
        let desk = Desk(), live = desk.make()
        let answers = Mutex<[[String]]>([])
        let look = { live.look { look in answers.withLock { $0.append(look?.report.plays.map(\.title) ?? []) } } }
        _ = live.watch(showsSecrets: false) {}
        desk.hold()
        desk.play("a")
        look()
        desk.play("b")
        desk.pass()
        look()
        desk.release()
        #expect(answers.withLock { $0 } == [["a"], ["a"]])
        look()
        #expect(try Self.names(live.page(showsSecrets: false)) == ["b"])
    }

    /// Those who do not read hold a state each.
    @Test func aStateIsBoundedInBytes() throws {
        let desk = Desk(), live = desk.make()
        _ = live.watch(showsSecrets: true) {}
        desk.play("a", "b", "c", "d", query: "?" + String(repeating: "x", count: 100_000))
        live.refresh()
        let page = try #require(live.page(showsSecrets: true))
        #expect(try Self.names(page)?.count == 2 && page.text.bytes.count <= 257 << 10)
        #expect(String(decoding: page.text.bytes, as: UTF8.self).contains("\"hidden\":{\"downloads\":0,\"plays\":2,"))
    }

    @Test func onlyNewsAreWritten() throws {
        let desk = Desk(), live = desk.make(), wakes = Atomic(0)
        _ = live.watch(showsSecrets: false) { wakes.add(1, ordering: .relaxed) }
        for _ in 0..<3 {
            live.refresh()
            desk.pass()
        }
        #expect(wakes.load(ordering: .relaxed) == 1)
        desk.play("a")
        live.refresh()
        #expect(wakes.load(ordering: .relaxed) == 2)
        let revision = live.page(showsSecrets: false)?.revision
        live.refresh()
        #expect(live.page(showsSecrets: false)?.revision == revision, "that was a moment ago")
    }
}

/// What is remembered of presentations.
@Suite struct CoverageSurveysTests {
    /// Each survey takes three seconds.
    @Test func aSurveyIsKeptForTenTimesAsLongAsItTook() {
        let time = Mutex<UInt64>(100), found = Mutex(0)
        let surveys = CoverageSurveys(now: { time.withLock { $0 * 1_000_000_000 } }) { _, _ in }
        func find(_ key: String) -> Int {
            surveys.renditions(of: CacheKey(text: key)) {
                $0()
            } find: {
                time.withLock { $0 += 3 }
                found.withLock { $0 += 1 }
                return []
            } then: { _ in
            }
            return found.withLock { $0 }
        }
        #expect(find("a") == 1 && find("a") == 1)
        #expect(find("b") == 2)
        time.withLock { $0 = 132 }
        #expect(find("a") == 2)
        time.withLock { $0 = 133 }
        #expect(find("a") == 3)
        for number in 0..<100 { _ = find("\(number)") }
        #expect(find("a") == 104, "there are never more than a few")
    }

    /// A survey of a long film takes memory: it goes even if nobody ever asks again.
    @Test func aSurveyIsDroppedWhenItIsTooOld() {
        let time = Mutex<UInt64>(100), alarms = Mutex<[(UInt64, @Sendable () -> Void)]>([])
        let surveys = CoverageSurveys {
            time.withLock { $0 }
        } later: { span, act in
            alarms.withLock { $0.append((span, act)) }
        }
        surveys.renditions(of: CacheKey(text: "a")) {
            $0()
        } find: {
            time.withLock { $0 += 3 }
            return []
        } then: { _ in
        }
        #expect(surveys.keptCount == 1 && alarms.withLock { $0.map(\.0) } == [30])
        time.withLock { $0 += 30 }
        for (_, act) in alarms.withLock({ $0 }) { act() }
        #expect(surveys.keptCount == 0)
    }

    @Test func whatTakesNoTimeIsAlwaysNew() {
        let surveys = CoverageSurveys(now: { 100 }) { _, _ in }, found = Mutex(0)
        for _ in 0..<3 {
            surveys.renditions(of: CacheKey(text: "a")) {
                $0()
            } find: {
                found.withLock { $0 += 1 }
                return []
            } then: { _ in
            }
        }
        #expect(found.withLock { $0 } == 3)
    }

    private struct Damage: Error {}

    @Test func thoseWhoAskMeanwhileShareOneSurveyAndOneRunsAtATime() {
        let surveys = CoverageSurveys(now: { 100 }) { _, _ in }
        let threads = Mutex<[@Sendable () -> Void]>([]), found = Mutex<[String]>([]), told = Mutex<[String]>([])
        func ask(_ key: String, as name: String) {
            surveys.renditions(of: CacheKey(text: key)) { work in
                threads.withLock { $0.append(work) }
            } find: {
                found.withLock { $0.append(key) }
                if key == "damaged" { throw Damage() }
                return []
            } then: { outcome in
                told.withLock { $0.append((try? outcome.get()) == nil ? "\(name) failed" : name) }
            }
        }
        func runNext() -> Bool {
            guard let work = threads.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) else { return false }
            work()
            return true
        }
        for (key, name) in [("a", "1"), ("a", "2"), ("damaged", "3"), ("a", "4"), ("damaged", "5")] {
            ask(key, as: name)
        }
        #expect(threads.withLock { $0.count } == 1)
        #expect(runNext() && told.withLock { $0 } == ["1", "2", "4"])
        #expect(runNext() && told.withLock { $0 } == ["1", "2", "4", "3 failed", "5 failed"])
        #expect(!runNext() && found.withLock { $0 } == ["a", "damaged"])
        ask("damaged", as: "6")
        #expect(runNext() && found.withLock { $0 } == ["a", "damaged", "damaged"])
    }
}
