import CachePolicy
import FillTestSupport
import HTTPModel
import Testing
import TestSupport

@testable import CacheFill
@testable import DiskCache

private let chunk: Int64 = 64 << 10
private let film = Media(seed: 1400, size: 20 * chunk + 100)
private let path = "/film.mp4"

/// What a prefetch brings, and what remains of it. Downloads as a whole are in the scenarios.
@Suite(.timeLimit(.minutes(10))) struct PrefetchTests {
    @Test(
        arguments: [
            // What is wanted, and what is asked for: whole chunks.
            (nil, 0..<film.size), (3 * chunk..<5 * chunk, 3 * chunk..<5 * chunk),
            (3 * chunk + 1..<5 * chunk - 1, 3 * chunk..<5 * chunk),
            (19 * chunk..<ByteNumber.greatest, 19 * chunk..<film.size),
        ] as [(Range<Int64>?, Range<Int64>)], [true, false])
    func rangeComesAndNothingElse(_ pair: (wanted: Range<Int64>?, asked: Range<Int64>), keeps: Bool) throws {
        try FillStage.with { stage in
            stage.origin.serve(path, film)
            let order = Prefetch.Order(url: try stage.url(path), range: pair.wanted, keeps: keeps)
            #expect(try stage.prefetch(order).end.isCompleted)
            #expect(
                stage.origin.requests(path).map { $0.range?.clamped(to: 0..<film.size) ?? 0..<film.size } == [
                    pair.asked
                ])
            let generation = try #require(try stage.generation(path))
            #expect(generation.coverage(of: pair.asked) == .whole)
            #expect(generation.presentBytes(of: 0..<film.size) == Int64(pair.asked.count))
            #expect(generation.isKept == keeps)
        }
    }

    @Test func whatIsThereIsNotAskedForAgain() throws {
        try FillStage.with { stage in
            stage.origin.serve(path, film)
            let url = try stage.url(path)
            for range in [2 * chunk..<4 * chunk, 0..<6 * chunk, chunk..<5 * chunk] {
                #expect(try stage.prefetch(Prefetch.Order(url: url, range: range, keeps: false)).end.isCompleted)
            }
            #expect(
                stage.origin.requests(path).map(\.range) == [
                    2 * chunk..<4 * chunk, 0..<2 * chunk, 4 * chunk..<6 * chunk,
                ])
        }
    }

    @Test func rangeBehindTheEndIsAnErrorAndNotTheWhole() throws {
        try FillStage.with { stage in
            stage.origin.serve(path, film)
            let order = Prefetch.Order(url: try stage.url(path), range: film.size + chunk..<film.size + 2 * chunk)
            guard case .failed(.status(416, _)) = try stage.prefetch(order).end else {
                return #expect(Bool(false), "there is nothing behind the end")
            }
            #expect(stage.origin.requestCount(path) == 1)
        }
    }

    // What comes for a player alone: nobody asks for it once more.
    @Test func whatMayNotBeStoredIsAskedForOnce() throws {
        try FillStage.with { stage in
            stage.origin.serve(path, film)
            stage.origin.script(path) { $0.headers = [("Cache-Control", "no-store")] }
            let order = Prefetch.Order(url: try stage.url(path), keeps: false)
            guard case .failed(.notStorable(.noStore)) = try stage.prefetch(order).end else {
                return #expect(Bool(false), "it may not be stored")
            }
            #expect(stage.origin.requestCount(path) == 1)
        }
    }

    @Test(arguments: [(false, 1), (true, 2)]) func whatPassesByForAPlayerIsAskedForOnceMoreByDownloadsAlone(
        keeps: Bool, count: Int
    ) throws {
        try FillStage.with { stage in
            stage.origin.serve(path, film)
            stage.origin.script(path) { $0.headers = [("Cache-Control", "no-store")] }
            stage.origin.holdHeads(path)
            // So that it joins at once.
            try stage.waitUntilUnknown(path)
            let url = try stage.url(path), follower = FollowerID()
            stage.onLoop { filler in
                let demand = Demand(url: url, span: nil, resolvedRule: ResolvedRule())
                _ = filler.open(filler.filler.resource(url.cacheKey), demand, follower: follower, alone: false)
            }
            try stage.origin.waitForRequests(path, count: 1)
            let ended = Monitor<Prefetch.End?>(nil)
            stage.onLoop { filler in
                Prefetch(Prefetch.Order(url: url, keeps: keeps), pace: nil, on: filler) { end in
                    ended.update { $0 = end }
                }.start()
            }
            stage.origin.release(path)
            guard case .failed(.notStorable(.noStore)) = try ended.wait(for: "its end", { $0 }) else {
                return #expect(Bool(false), "it may not be stored")
            }
            #expect(stage.origin.requestCount(path) == count)
        }
    }

    // After a power cut, until the files of a cache whose index is lost have been examined.
    @Test func whatFindsNoRoomForNowMayBeTriedAgain() throws {
        try FillStage.with { stage in
            stage.origin.serve(path, film)
            stage.store.ledger.setUncounted(.max / 4)
            guard case .failed(.fill(.notStoredYet)) = try stage.prefetch(Prefetch.Order(url: try stage.url(path))).end
            else {
                return #expect(Bool(false), "there is no room yet")
            }
        }
    }

    // A player that seeks has one piece copied, which is given back before it gets the next.
    @Test func firstPieceIsGivenBackAtTheSecond() throws {
        try FillStage.with { stage in
            stage.origin.serve(path, film)
            let url = try stage.url(path)
            #expect(try stage.prefetch(Prefetch.Order(url: url, keeps: false)).end.isCompleted)
            let generation = try #require(try stage.generation(path))
            let spare = stage.onLoop { filler in
                let demand = Demand(url: url, span: nil, resolvedRule: ResolvedRule())
                let reader = CacheReader(
                    generation, from: 0, to: film.size, resource: filler.filler.resource(url.cacheKey),
                    host: url.host, demand: demand, filler: filler)
                _ = reader.next(limit: 16 << 10)
                let first = filler.pieces.spareCount
                _ = reader.next(limit: 16 << 10)
                let second = filler.pieces.spareCount
                reader.finish()
                return [first, second, filler.pieces.spareCount]
            }
            // What cannot be read at once is mapped instead.
            #expect(spare == (stage.directory.readsAtOnce ? [0, 1, 1] : [1, 1, 1]))
        }
    }
}

/// Who follows a fetch, and what that means for downloads.
@Suite struct FollowerKindTests {
    @Test func bytesThatArriveForDownloadsAloneAreCountedOnce() {
        let reach = ResourceState.Reach(window: ReadAheadWindow(limit: 1 << 20), furthest: 1 << 20)
        var fetch = FetchState(range: 0..<film.size, reach, isShared: true)
        let (one, other, reader) = (FollowerID(.download), FollowerID(.download), FollowerID())
        func arrive(_ count: Int) {
            let pauses = fetch.pauses(received: 0, writtenTo: 0, before: count, within: .max)
            #expect(!pauses)
        }
        func taken() -> Int64 { fetch.takeForDownloads() }
        arrive(1)
        fetch.enter(one, at: FetchState.Place(start: 0, offset: 0))
        fetch.enter(other, at: FetchState.Place(start: 0, offset: 0))
        arrive(10)
        fetch.enter(reader, at: FetchState.Place(start: 0, offset: 0))
        arrive(100)
        #expect([taken(), taken()] == [10, 0])
        _ = (fetch.leave(reader), fetch.leave(one))
        arrive(1000)
        #expect(taken() == 1000)
        // What does not fit the window is offered again later.
        let pauses = fetch.pauses(received: 1 << 20, writtenTo: 0, before: 5, within: .max)
        #expect(pauses && taken() == 0)
    }

    /// A download that the pace holds back keeps such a fetch: else each pause would cost a request.
    @Test func whatIsBeingWrittenIsNotOutOfReach() {
        let reach = ResourceState.Reach(window: ReadAheadWindow(limit: 1 << 20), furthest: 1 << 20)
        var fetch = FetchState(range: 0..<film.size, reach, isShared: true)
        _ = fetch.pauses(received: 65536, writtenTo: 65536, before: 0, within: .max)
        #expect(!fetch.delivers(0..<65536) && fetch.reaches(0..<65536) && fetch.delivers(65536..<131_072))
        #expect(!fetch.reaches(film.size..<film.size + 1))
    }

    @Test(
        arguments: [(.reader, true, false), (.fill, false, false), (.download, false, true), (.ahead, true, true)]
            as [(FollowerID.Kind, Bool, Bool)])
    func downloadsMakeWayForWhatIsPlayedSoon(kind: FollowerID.Kind, isPlaying: Bool, leavesForGood: Bool) {
        let reach = ResourceState.Reach(window: ReadAheadWindow(limit: 1 << 20), furthest: 1 << 20)
        var fetch = FetchState(range: 0..<film.size, reach, isShared: true)
        let follower = FollowerID(kind)
        fetch.enter(follower, at: FetchState.Place(start: 0, offset: 0))
        #expect(fetch.isBeingRead == isPlaying)
        #expect(fetch.isForDownloads == (kind == .download))
        _ = fetch.leave(follower)
        #expect(fetch.wasLeftForGood == leavesForGood)
    }
}
