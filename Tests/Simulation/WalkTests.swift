import CacheFill
import CachePolicy
import EventIO
import Glibc
import HTTPModel
import Presentations
import TestSupport
import Testing

/// What the walks of docs/dev/architecture.md cost, in all threads together: the bounds only fall.
@Suite struct WalkTests {
    /// In a process of its own, as all locks of one are counted together.
    @Test func aHitAndAMissTakeFewLocks() async {
        await #expect(processExitsWith: .success) {
            let walk = try Walk()
            // The first request of all reads what is not read again.
            _ = try walk.request("first.mp4")
            let miss = try walk.request("film.mp4")
            // Its file is mapped for the second reader.
            _ = try walk.request("film.mp4")
            let hit = try walk.request("film.mp4")
            #expect(hit.locks <= 8 && hit.handOvers == 0, "\(hit)")
            // A tmpfs cannot read at once what has come: it is mapped, with two more locks.
            #expect(miss.locks <= (walk.directory.readsAtOnce ? 47 : 49) && miss.handOvers <= 3, "\(miss)")
        }
    }

    @Test func aPlaylistIsFewHandOversFromItsFirstSegment() throws {
        let walk = try Walk()
        _ = try walk.request("first.mp4")
        #expect(try walk.prefetchPlaylist() <= 4)
    }

    /// A download that begins while a thread still writes for the one before it does not fetch that again.
    @Test func whatIsBeingWrittenIsNotFetchedAgain() throws {
        #expect(try Walk().prefetchTwice() == 1_000_000)
    }
}

/// A proxy of one loop, before an origin that answers at once.
private final class Walk {
    private let schedule = Schedule(seed: 1)
    private let origin: SimulatedOrigin
    let directory: TemporaryDirectory
    private let proxy: SimulatedProxy
    private let loop: EventLoop
    private let socket: Int32

    /// Locks taken, and work handed over to a thread, the own one included.
    struct Cost {
        var locks: Int
        var handOvers: Int

        static func - (one: Cost, other: Cost) -> Cost {
            Cost(locks: one.locks - other.locks, handOvers: one.handOvers - other.handOvers)
        }
    }

    init() throws {
        schedule.tick = 3600
        origin = SimulatedOrigin(schedule, films: 0, faults: 0)
        origin.isPrompt = true
        for name in ["first.mp4", "film.mp4"] { origin.publish(Film(name, length: 10_000)) }
        origin.publish(Film("long.mp4", length: 1_000_000))
        directory = try TemporaryDirectory()
        loop = try EventLoop(index: 0, driver: schedule)
        schedule.add(loop)
        proxy = try SimulatedProxy(
            schedule, origin, loops: [loop], in: directory.path, maxSize: 16_000_000, openFiles: 64)
        socket = try proxy.connect(to: 0)
    }

    deinit { close(socket) }

    private var cost: Cost { Cost(locks: HeldLocks.taken, handOvers: schedule.handOvers) }

    /// Orders a playlist as a download, until its segment is requested.
    /// - Returns: how many threads handed that over, one after the other.
    func prefetchPlaylist() throws -> Int {
        let url = "http://origin.test/list.m3u8"
        origin.playlists[url] = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\nfilm.mp4\n#EXT-X-ENDLIST\n"
        return try schedule.owningTime {
            let fill = try prefetch(url)
            try schedule.run(seconds: 10) { origin.costs["film.mp4"] != nil }
            guard origin.costs["film.mp4"] != nil else { throw Violation("no segment") }
            let depth = origin.lastDepth
            loop.drive { fill.value.stop() }
            return depth
        }
    }

    /// Orders a film as a download, stops that while the disk is slow, and orders it again.
    /// - Returns: how many bytes of it the origin sent.
    func prefetchTwice() throws -> Int64 {
        try schedule.owningTime {
            let url = "http://origin.test/long.mp4"
            schedule.stall(.pool("write"), seconds: 1)
            let former = try prefetch(url)
            try schedule.run(seconds: 0.5)
            loop.drive { former.value.stop() }
            var isComplete = false
            let next = try prefetch(url) { isComplete = true }
            try schedule.run(seconds: 100) { isComplete }
            guard isComplete, let cost = origin.costs["long.mp4"] else { throw Violation("not complete") }
            loop.drive { next.value.stop() }
            return cost.sent
        }
    }

    private func prefetch(_ url: String, onEnd end: @escaping () -> Void = {}) throws -> LoopBound<PresentationFill> {
        let order = PresentationFill.Order(url: try OriginURL(url: url))
        let pace = FillPace(proxy.filler.downloadLine(), rate: nil)
        let fill = loop.drive {
            LoopBound(PresentationFill(order, pace: pace, on: proxy.fillers[0]) { _ in end() }, on: loop)
        }
        loop.post { fill.value.start() }
        return fill
    }

    /// Requests a film, and receives all of it.
    func request(_ name: String) throws -> Cost {
        try schedule.owningTime {
            let text = "GET /http/origin.test/\(name) HTTP/1.1\r\nHost: localhost\r\n\r\n"
            guard send(socket, text, text.utf8.count, 0) == text.utf8.count else { throw Violation("not sent") }
            let before = cost
            var decoder = ResponseDecoder(), buffer = [UInt8](repeating: 0, count: 65_536), isWhole = false
            var isHead = true
            try schedule.run(seconds: 10) {
                while case let count = recv(socket, &buffer, buffer.count, Int32(MSG_DONTWAIT)), count > 0 {
                    decoder.append(Array(buffer[..<count]))
                }
                if isHead, let head = try? decoder.nextHead(method: "GET") { isHead = head.status != 200 }
                while !isHead, case .bytes? = try? decoder.nextBody(upTo: .max) {}
                isWhole = !isHead && decoder.framing == .done
                return isWhole
            }
            guard isWhole else { throw Violation("no answer") }
            return cost - before
        }
    }
}
