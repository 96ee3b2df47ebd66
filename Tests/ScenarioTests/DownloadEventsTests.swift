import CachePolicy
import Downloads
import EventIO
import Synchronization
import Testing

@testable import ControlAPI
@testable import Reelcache

/// What the events of downloads cost, however many follow them.
@Suite struct DownloadEventsTests {
    /// The events, with a thread that does nothing until it is told to.
    private final class Desk: Sendable {
        let snapshots = DownloadSnapshots()
        private let works = Mutex<[@Sendable () -> Void]>([])

        func make() -> DownloadEvents {
            DownloadEvents(snapshots, Current(ProxyPolicy())) { [self] work in
                works.withLock { $0.append(work) }
                return true
            }
        }

        func work() {
            while let work = works.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) { work() }
        }
    }

    /// One who follows.
    private final class Follower: @unchecked Sendable {
        private let (desk, events): (Desk, DownloadEvents)
        private let wish: DownloadEvents.Filter
        private var cursor: DownloadEvents.Cursor
        private let part = Mutex<DownloadEvents.Part?>(nil)
        /// What it holds and has not read.
        private(set) var unread: EventText?
        private(set) var isCurrent = false

        init(_ desk: Desk, _ events: DownloadEvents, of ids: Set<Int64>? = nil, showsSecrets: Bool = false) {
            (self.desk, self.events) = (desk, events)
            wish = .init(session: "s", ids: ids, showsSecrets: showsSecrets)
            cursor = events.begin(wish, hasEnded: false, lastID: nil)
        }

        func ask() { events.part(wish, after: cursor) { [self] part in self.part.withLock { $0 = part } } }

        func take() throws {
            let part = try #require(part.withLock { $0 })
            (cursor, unread, isCurrent) = (part.cursor, part.text, part.isLast)
        }

        /// Reads to the end; the data of the events.
        func read() throws -> [String] {
            var lines: [String] = []
            repeat {
                ask()
                desk.work()
                try take()
                lines += (unread.map { String(decoding: $0.bytes, as: UTF8.self) } ?? "").split(separator: "\n").filter
                {
                    $0.hasPrefix("data: ")
                }.map { String($0.dropFirst(6)) }
            } while !isCurrent
            unread = nil
            return lines
        }
    }
    private static func ids(_ lines: [String]) throws -> [Int64] {
        try lines.filter { $0.contains("\"url\"") }.map {
            try ControlJSON.decode(Download.self, from: $0.utf8).id
        }
    }

    @Test func aDownloadIsWrittenOnceForAllWhoFollow() throws {
        let desk = Desk(), events = desk.make()
        let unwatch = events.watch {}
        desk.snapshots.post((1...1000).map { .sample(Int64($0)) })
        let followers = (0..<20).map { _ in Follower(desk, events) }
        for follower in followers { try #expect(Self.ids(follower.read()) == Array(1...1000)) }
        #expect(events.writtenCount == 1000)
        _ = try Follower(desk, events, of: [3, 7]).read()
        #expect(events.writtenCount == 1000, "whatever they select")

        desk.snapshots.post(.sample(500, .downloading, bytes: 1))
        for follower in followers {
            let lines = try follower.read()
            #expect(lines.count == 1 && lines[0].contains("\"id\":500"), "nothing but what has changed")
        }
        #expect(events.writtenCount == 1001)
        try #expect(Self.ids(Follower(desk, events, showsSecrets: true).read()).count == 1000)
        #expect(events.writtenCount == 2001, "with secrets, the text is another")
        unwatch()
        _ = try Follower(desk, events).read()
        #expect(events.writtenCount == 3001, "nothing is kept for nobody")
    }

    @Test func thoseWhoDoNotReadShareAFewBytes() throws {
        let desk = Desk(), events = desk.make()
        _ = events.watch {}
        desk.snapshots.post((1...20_000).map { .sample(Int64($0)) })
        let followers = (0..<100).map { _ in Follower(desk, events) }
        for follower in followers { follower.ask() }
        #expect(events.writtenCount == 0, "nothing is written by who asks")
        desk.work()
        for follower in followers { try follower.take() }
        let texts = Dictionary(
            followers.compactMap(\.unread).map { (ObjectIdentifier($0), $0.bytes.count) },
            uniquingKeysWith: { a, _ in a })
        #expect(texts.count == 1 && texts.values.reduce(0, +) <= 64 << 10)
        #expect(events.writtenCount == 64)
    }

    @Test func onePartIsBoundedInBytes() throws {
        let desk = Desk(), events = desk.make()
        _ = events.watch {}
        let reports = (1...100).map { id in
            var report = Download.sample(Int64(id))
            report.message = String(repeating: "x", count: 10_000)
            return report
        }
        desk.snapshots.post(reports)
        let follower = Follower(desk, events)
        follower.ask()
        desk.work()
        try follower.take()
        #expect(try #require(follower.unread).bytes.count < 80_000)
        try #expect(Self.ids(follower.read()) == Array(8...100))
    }

    /// A thousand changes were made meanwhile.
    @Test func whoReadsLateGetsTheNewestState() throws {
        let desk = Desk(), events = desk.make()
        _ = events.watch {}
        desk.snapshots.post((1...3).map { .sample(Int64($0)) })
        let late = Follower(desk, events), other = Follower(desk, events)
        _ = try (late.read(), other.read())
        for bytes in 1...1000 {
            desk.snapshots.post(.sample(2, .downloading, bytes: Int64(bytes)))
            if bytes.isMultiple(of: 100) { try #expect(other.read().count == 1) }
        }
        let lines = try late.read()
        #expect(lines.count == 1 && lines[0].contains("\"bytes\":1000,"))
        #expect(events.writtenCount == 3 + 10)
    }

    @Test func aClientMayFollowSomeStreamsAndAllSomeMore() throws {
        let streams = OpenAnswers("streams", most: 7, mostOfAClient: 4)
        let (one, other) = (try #require(IPAddress("192.0.2.1")), try #require(IPAddress("192.0.2.2")))
        var held = try (0..<streams.mostOfAClient).map { _ in try streams.open(one) }
        #expect(throws: ControlError.self) { try streams.open(one) }
        do { _ = try streams.open(one) } catch { #expect(error.status == 429 && error.reason.contains("end one")) }
        held.removeLast()
        held.append(try streams.open(one))
        while held.count < streams.most {
            held.append(try streams.open(held.count.isMultiple(of: 2) ? other : nil))
        }
        do {
            _ = try streams.open(other)
            Issue.record("there is a limit for all")
        } catch { #expect(error.status == 503) }
        held = []
        for _ in 0..<streams.mostOfAClient { held.append(try streams.open(one)) }
    }
}
