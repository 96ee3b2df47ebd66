import HTTPModel
import Synchronization
import Testing
import Upstream

@testable import CacheFill

private let second: UInt64 = 1_000_000_000

@Suite struct HostStandingTests {
    private var standing = OriginBackoff.HostStanding()

    @Test mutating func hostIsLeftAloneForAsLongAsItSaid() {
        standing.answered(20, from: "/", at: 5 * second)
        #expect(standing.wait(for: "/", at: 5 * second) == 20)
        #expect(standing.wait(for: "/", at: 24 * second) == 1)
        #expect(standing.wait(for: "/", at: 25 * second) == 0)
        #expect(!standing.isRemarkable(at: 25 * second))
    }

    @Test mutating func shorterWishTakesNothingBack() {
        standing.answered(20, from: "/", at: 0)
        standing.answered(3, from: "/", at: second)
        standing.answered(nil, from: "/", at: second)
        #expect(standing.wait(for: "/", at: second) == 19)
    }

    @Test(arguments: [3601, .max] as [Int64])
    func moreThanAnHourIsNotBelieved(wish: Int64) {
        var standing = OriginBackoff.HostStanding()
        standing.answered(wish, from: "/", at: second)
        #expect(standing.wait(for: "/", at: second) == 3600)
    }

    @Test mutating func hostIsDownForTwiceAsLongAfterEachFailureUpToABound() {
        var now: UInt64 = 0
        for seconds in [1, 2, 4, 8, 16, 30, 30] as [UInt64] {
            standing.failed(at: now)
            #expect(standing.isDown(at: now + seconds * second - 1))
            now += seconds * second
            #expect(!standing.isDown(at: now))
        }
    }

    @Test mutating func failuresTogetherCountOnce() {
        for _ in 0..<50 { standing.failed(at: 0) }
        #expect(!standing.isDown(at: second))
        standing.failed(at: second)
        #expect(standing.isDown(at: 3 * second - 1) && !standing.isDown(at: 3 * second))
    }

    @Test mutating func answerMakesAHostAsGoodAsNew() {
        for now in [0, second, 3 * second] { standing.failed(at: now) }
        standing.answered(nil, from: "/", at: 4 * second)
        #expect(!standing.isDown(at: 4 * second) && !standing.isRemarkable(at: 4 * second))
        standing.failed(at: 4 * second)
        #expect(!standing.isDown(at: 5 * second))
    }

    @Test mutating func failuresOfLongAgoAreForgotten() {
        standing.failed(at: 0)
        standing.failed(at: second)
        #expect(standing.isRemarkable(at: 62 * second))
        #expect(!standing.isRemarkable(at: 63 * second))
        standing.failed(at: 63 * second)
        #expect(!standing.isDown(at: 64 * second))
    }
}

@Suite struct OriginBackoffTests {
    private final class Clock: Sendable {
        let seconds = Atomic<UInt64>(1000)
        var backoff: OriginBackoff { OriginBackoff { self.seconds.load(ordering: .relaxed) * second } }
    }

    private let clock = Clock()

    private func head(
        _ status: Int, _ retryAfter: String?, date: String? = nil, from url: String = "http://a.test/1",
        receivedAt: Int64 = 0
    ) -> UpstreamHead {
        var fields = HeaderFields()
        if let retryAfter { fields.append("Retry-After", retryAfter) }
        if let date { fields.append("Date", date) }
        return UpstreamHead(status: status, fields: fields, finalURL: url, contentLength: 0, receivedAt: receivedAt)
    }

    @Test(
        arguments: [
            (429, "7", 7), (503, " 7 ", 7), (429, nil, 0), (429, "soon", 0), (500, "7", 0), (200, "7", 0),
            (302, "7", 0),
        ] as [(Int, String?, Double)])
    func onlyWhoRefusesIsLeftAlone(status: Int, field: String?, wait: Double) {
        let backoff = clock.backoff
        backoff.note(head(status, field), requesting: "http://a.test/1")
        #expect(backoff.wait(before: "http://a.test/other?q") == wait)
    }

    @Test func dateIsReadByTheClockOfWhoWroteIt() {
        let backoff = clock.backoff
        let (now, then) = ("Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:51:37 GMT")
        backoff.note(head(503, then, date: now), requesting: "http://a.test/1")
        #expect(backoff.wait(before: "http://a.test/") == 120)
        backoff.note(
            head(503, then, from: "http://b.test/", receivedAt: 784_111_777 + 100), requesting: "http://b.test/")
        #expect(backoff.wait(before: "http://b.test/") == 20)
        backoff.note(head(503, now, date: then, from: "http://c.test/"), requesting: "http://c.test/")
        #expect(backoff.wait(before: "http://c.test/") == 0)
    }

    @Test(arguments: [
        ("http://a.test:80/2", true), ("http://A.TEST/", true), ("https://a.test/1", false),
        ("http://a.test:81/1", false), ("http://b.a.test/1", false), ("nonsense", false),
    ])
    func wishIsThatOfOneHostAndPort(url: String, isMeant: Bool) {
        let backoff = clock.backoff
        backoff.note(head(429, "7"), requesting: "http://a.test/1")
        #expect((backoff.wait(before: url) > 0) == isMeant)
    }

    @Test func wishIsThatOfTheHostThatARedirectLedTo() {
        let backoff = clock.backoff
        backoff.note(head(429, "7", from: "http://b.test/x"), requesting: "http://a.test/1")
        #expect(backoff.wait(before: "http://a.test/1") == 0)
        #expect(backoff.wait(before: "http://b.test/1") == 7)
    }

    @Test(
        arguments: [
            (.cannotConnect(host: "a.test", detail: ""), true), (.cannotResolve(host: "a.test"), true),
            (.timedOut(host: "a.test", phase: .connect), true),
            (.timedOut(host: "a.test", phase: .response), false), (.broken(detail: ""), false),
            (.addressRefused(host: "a.test", address: "10.0.0.1"), false),
            (.cannotConnect(host: "b.test", detail: ""), false), (.timedOut(host: "a.test", phase: .queue), false),
            (.timedOut(host: "a.test", phase: .names), false), (.outOfDescriptors(host: "a.test"), false),
        ] as [(UpstreamError, Bool)])
    func hostIsDownToWhichNoConnectionCanBeMade(error: UpstreamError, isDown: Bool) {
        let backoff = clock.backoff
        backoff.note(error, requesting: "http://a.test/1")
        #expect(backoff.isDown("http://a.test/2", beside: []) == isDown)
        #expect(!backoff.isDown("http://b.test/", beside: []))
        #expect(backoff.wait(before: "http://a.test/2") == 0)
    }

    @Test func addressInBracketsCanBeDown() {
        let backoff = clock.backoff
        backoff.note(.cannotConnect(host: "2001:db8::1", detail: ""), requesting: "http://[2001:db8::1]/1")
        #expect(backoff.isDown("http://[2001:db8::1]/2", beside: []))
    }

    @Test func timeHealsAndSoDoesAnAnswer() {
        let backoff = clock.backoff
        backoff.note(.cannotResolve(host: "a.test"), requesting: "http://a.test/1")
        clock.seconds.add(1, ordering: .relaxed)
        #expect(!backoff.isDown("http://a.test/1", beside: []))
        backoff.note(.cannotResolve(host: "a.test"), requesting: "http://a.test/1")
        #expect(backoff.isDown("http://a.test/1", beside: []))
        // Behind a redirect: both were reached.
        backoff.note(head(200, nil, from: "http://b.test/"), requesting: "http://a.test/1")
        #expect(!backoff.isDown("http://a.test/1", beside: []))
    }

    @Test func whatIsRememberedIsBounded() {
        let backoff = clock.backoff
        for index in 0..<2000 {
            backoff.note(
                head(429, "\(1000 + index)", from: "http://\(index).test/"), requesting: "http://\(index).test/")
        }
        let remembered = (0..<2000).filter { backoff.wait(before: "http://\($0).test/") > 0 }
        #expect(remembered.count <= 512 && remembered.contains(1999))
    }

    /// One of many who share a host would silence all of them.
    @Test func hostIsLeftAloneForAMinuteAndTheTenantForAsLongAsItSaid() {
        let backoff = clock.backoff
        backoff.note(head(429, "3600", from: "http://a.test/one/x"), requesting: "http://a.test/one/x")
        for (url, wait) in [
            ("http://a.test/one/y/z?q", 3600.0), ("http://a.test/two/x", 60), ("http://a.test/one", 60),
            ("http://a.test/?a/b", 60),
        ] {
            #expect(backoff.wait(before: url) == wait, "\(url)")
        }
        clock.seconds.add(60, ordering: .relaxed)
        #expect(backoff.wait(before: "http://a.test/two/x") == 0 && backoff.wait(before: "http://a.test/one/y") == 3540)
    }

    @Test func goodAnswerToAnotherTenantIsForAllOthers() {
        let backoff = clock.backoff
        backoff.note(head(429, "3600", from: "http://a.test/one/x"), requesting: "http://a.test/one/x")
        // Of requests that were under way.
        backoff.note(head(200, nil, from: "http://a.test/one/y"), requesting: "http://a.test/one/y")
        backoff.note(head(404, nil, from: "http://a.test/two/x"), requesting: "http://a.test/two/x")
        #expect(backoff.wait(before: "http://a.test/two/x") == 60)
        backoff.note(head(206, nil, from: "http://a.test/two/x"), requesting: "http://a.test/two/x")
        #expect(backoff.wait(before: "http://a.test/two/x") == 0 && backoff.wait(before: "http://a.test/one/x") == 3600)
    }

    @Test func placesOfAHostAreBounded() {
        let backoff = clock.backoff
        for index in 0..<500 {
            backoff.note(
                head(429, "\(1000 + index)", from: "http://a.test/\(index)/"), requesting: "http://a.test/\(index)/")
        }
        let remembered = (0..<500).filter { backoff.wait(before: "http://a.test/\($0)/") > 60 }
        #expect(remembered == Array(468..<500))
    }
}
