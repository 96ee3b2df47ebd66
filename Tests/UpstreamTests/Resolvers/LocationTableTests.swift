import CachePolicy
import Synchronization
import Testing

@testable import Upstream

private let page = LocationTable.Name(url: try! OriginURL(url: "https://site.example/watch"), command: ["find"])
private let resolver = try! Resolver(
    hosts: [try! HostPattern("site.example")], paths: [], command: ["find"], timeout: 5)

private func location(_ number: Int, expires: Int64? = nil) -> MediaLocation {
    MediaLocation(url: try! OriginURL(url: "https://cdn.example/\(number)"), expires: expires)
}

private func name(_ number: Int) -> LocationTable.Name {
    LocationTable.Name(url: try! OriginURL(url: "https://site.example/\(number)"), command: ["find"])
}

/// A table that expectations can ask.
private final class Desk {
    private var table = LocationTable()

    func find(_ name: LocationTable.Name, at now: Int64) -> (known: KnownLocation, startsThread: Bool) {
        table.find(name, by: resolver, at: now) { _ in }
    }

    func take() -> LocationTable.Search? { table.take() }

    func finished(_ name: LocationTable.Name, _ result: Result<MediaLocation, ResolverFailure>, at now: Int64)
        -> (waiters: [LocationTable.Waiter], result: Result<LocatedMedia, ResolverFailure>)
    {
        table.finished(name, result, at: now)
    }

    /// Finds, and records this result.
    func finish(_ name: LocationTable.Name, _ result: Result<MediaLocation, ResolverFailure>, at now: Int64) {
        _ = find(name, at: now)
        while let search = take() { _ = finished(search.name, result, at: now) }
    }

    func media(_ name: LocationTable.Name, at now: Int64) -> LocatedMedia? { table.known(name, at: now) }

    func substitute(_ location: MediaLocation, for name: LocationTable.Name, at now: Int64) -> LocatedMedia {
        table.substitute(location, for: name, at: now)
    }

    func worked(_ media: LocatedMedia, _ name: LocationTable.Name) { table.worked(media, name) }

    func refused(_ media: LocatedMedia, _ name: LocationTable.Name, status: Int, at now: Int64) -> Bool {
        table.refused(media, name, status: status, by: "find", at: now)
    }

    func close() -> [LocationTable.Waiter] { table.close() }
}

extension KnownLocation {
    fileprivate var isWaiting: Bool { if case .waiting = self { true } else { false } }
    fileprivate var failure: ResolverFailure? { if case .failed(let failure) = self { failure } else { nil } }
    fileprivate var url: String? { if case .located(let media) = self { media.location.url.absolute } else { nil } }
}

/// Which locations are remembered, and for how long.
@Suite struct LocationTableTests {
    @Test func requestsForOneURLShareASearch() {
        let table = Desk()
        let first = table.find(page, at: 0), second = table.find(page, at: 0)
        #expect(first.known.isWaiting && first.startsThread && second.known.isWaiting && !second.startsThread)
        #expect(table.take()?.name == page)
        // Nor does one that comes while it runs start another.
        #expect(!table.find(page, at: 1).startsThread)
        let (waiters, result) = table.finished(page, .success(location(1)), at: 2)
        #expect(waiters.count == 3 && (try? result.get())?.location == location(1))
        #expect(table.take() == nil)
        #expect(table.find(page, at: 3).known.url == "https://cdn.example/1")
    }

    @Test(
        arguments: [
            (nil, 600), (60, 60), (1_000_000, 86_400), (-5, 5), (0, 5), (Int64.min, 5), (Int64.max, 86_400),
        ] as [(Int64?, Int64)]) func locationCountsUntilItExpires(expires: Int64?, lifetime: Int64)
    {
        let table = Desk()
        let now: Int64 = 1000
        table.finish(
            page,
            .success(location(1, expires: expires.map { now.addingReportingOverflow($0).overflow ? $0 : now + $0 })),
            at: now)
        #expect(table.find(page, at: now + lifetime - 1).known.url != nil)
        #expect(table.find(page, at: now + lifetime).known.isWaiting)
    }

    @Test func failureCountsForAMoment() {
        let table = Desk()
        table.finish(page, .failure(.killed("find", signal: 9)), at: 0)
        #expect(table.find(page, at: 4).known.failure == .killed("find", signal: 9))
        #expect(table.find(page, at: 5).known.isWaiting)
    }

    /// Nothing says how long they would count.
    @Test func locationsAndFailuresDoNotOutliveAClockThatWasSetBack() {
        let table = Desk()
        table.finish(page, .success(location(1)), at: 100_000)
        #expect(table.find(page, at: 99_000).known.isWaiting && table.media(page, at: 99_000) == nil)
        table.finish(name(1), .failure(.killed("find", signal: 9)), at: 100_000)
        #expect(table.find(name(1), at: 99_000).known.isWaiting)
    }

    @Test func anotherCommandSearchesAgain() {
        let table = Desk()
        table.finish(page, .success(location(1)), at: 0)
        #expect(table.find(.init(url: page.url, command: ["find", "--better"]), at: 0).known.isWaiting)
    }

    @Test func fourRunAtATimeAndTheQueueIsBounded() {
        let table = Desk()
        let starts = (0..<64).map { table.find(name($0), at: 0).startsThread }
        #expect(starts.filter(\.self).count == 4 && starts.prefix(4).allSatisfy(\.self))
        #expect(table.find(name(64), at: 0).known.failure == .busy)
        // One that is being found takes others all the same.
        #expect(table.find(name(3), at: 0).known.isWaiting)
        let order = (0..<64).compactMap { _ in table.take()?.name }
        #expect(order == (0..<64).map(name))
        #expect(table.take() == nil)
        // That thread has ended, so another starts.
        #expect(table.find(name(70), at: 0).startsThread)
    }

    @Test func leastLastingAreForgottenFirst() {
        let table = Desk()
        for number in 0..<600 {
            table.finish(name(number), .success(location(number, expires: 1000 + Int64(number))), at: 0)
        }
        #expect(table.media(name(0), at: 0) == nil && table.media(name(87), at: 0) == nil)
        #expect((88..<600).allSatisfy { table.media(name($0), at: 0) != nil })
    }

    @Test func newLocationStaysThoughAllOthersLastLonger() {
        let table = Desk()
        for number in 0..<512 {
            table.finish(name(number), .success(location(number, expires: 80_000)), at: 0)
        }
        table.finish(page, .success(location(1)), at: 0)
        #expect(table.find(page, at: 0).known.url != nil)
        table.finish(name(600), .failure(.killed("find", signal: 9)), at: 0)
        #expect(table.find(name(600), at: 4).known.failure != nil)
    }

    @Test func thoseWhoWaitAreBounded() {
        let table = Desk()
        for _ in 0..<LocationTable.mostWaiters { #expect(table.find(page, at: 0).known.isWaiting) }
        #expect(table.find(page, at: 0).known.failure == .busy)
    }

    // MARK: Refusals

    @Test func refusedLocationThatHasWorkedIsFoundAgainAtOnce() throws {
        let table = Desk()
        table.finish(page, .success(location(1)), at: 0)
        let media = try #require(table.media(page, at: 0))
        table.worked(media, page)
        #expect(table.refused(media, page, status: 403, at: 1))
        #expect(table.find(page, at: 1).known.isWaiting)
    }

    @Test func locationThatIsRefusedAtOnceIsNotFoundAgainForAWhileThatDoubles() throws {
        let table = Desk()
        var now: Int64 = 0
        for wait in [2, 4, 8, 16, 32, 60, 60] as [Int64] {
            table.finish(page, .success(location(1)), at: now)
            let media = try #require(table.media(page, at: now))
            #expect(!table.refused(media, page, status: 403, at: now + 1))
            let failure = ResolverFailure.refused("find", status: 403, retryAfter: wait)
            #expect(table.find(page, at: now + wait).known.failure == failure)
            now += 1 + wait
        }
        // One that works begins anew.
        table.finish(page, .success(location(1)), at: now)
        let media = try #require(table.media(page, at: now))
        table.worked(media, page)
        #expect(table.refused(media, page, status: 403, at: now))
        table.finish(page, .success(location(1)), at: now)
        let next = try #require(table.media(page, at: now))
        #expect(!table.refused(next, page, status: 403, at: now))
        #expect(table.find(page, at: now + 2).known.isWaiting)
    }

    @Test func oldLocationThatIsRefusedIsFoundAgainAtOnce() throws {
        let table = Desk()
        table.finish(page, .success(location(1)), at: 0)
        let media = try #require(table.media(page, at: 0))
        #expect(table.refused(media, page, status: 410, at: 10))
    }

    @Test func refusalOfAFormerLocationLeavesItsSuccessor() throws {
        let table = Desk()
        table.finish(page, .success(location(1)), at: 0)
        let former = try #require(table.media(page, at: 0))
        table.worked(former, page)
        #expect(table.refused(former, page, status: 403, at: 1))
        table.finish(page, .success(location(2)), at: 1)
        #expect(table.refused(former, page, status: 403, at: 2))
        table.worked(former, page)
        #expect(table.find(page, at: 2).known.url == "https://cdn.example/2")
    }

    @Test func substituteStandsForItsURL() {
        let table = Desk()
        let media = table.substitute(location(1), for: page, at: 0)
        #expect(table.media(page, at: 599) == media)
        #expect(table.media(page, at: 600) == nil)
    }

    // MARK: The end

    @Test func closedTableFindsNothing() {
        let table = Desk()
        for number in 0..<6 { _ = table.find(name(number), at: 0) }
        #expect(table.take() != nil)
        #expect(table.close().count == 6)
        #expect(table.take() == nil)
        #expect(table.find(page, at: 0).known.failure == .closing)
        #expect(table.finished(name(0), .success(location(1)), at: 0).waiters.isEmpty)
    }
}
