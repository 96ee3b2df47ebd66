import Testing

@testable import ControlAPI
@testable import Reelcache

/// Links and sessions of the dashboard, by a clock of the test's own.
@Suite struct DashboardSessionsTests {
    private typealias Sessions = DashboardSessions

    /// The value, and random numbers for it.
    private final class Desk {
        private var sessions = Sessions()
        private var generator = SystemRandomNumberGenerator()

        func makeLink(at now: Int64) -> String { sessions.makeLink(at: now, using: &generator) }

        func begin(link: String, at now: Int64) -> Sessions.Secrets? {
            sessions.begin(link: link, at: now, using: &generator)
        }

        func begin(at now: Int64) -> Sessions.Secrets { sessions.begin(at: now, using: &generator) }

        func isValid(_ secrets: Sessions.Secrets, at now: Int64) -> Bool { sessions.isValid(secrets, at: now) }

        func end(_ secrets: Sessions.Secrets) { sessions.end(secrets) }
    }

    @Test func linkIsGoodOnceAndForAMinute() throws {
        let sessions = Desk()
        let link = sessions.makeLink(at: 100)
        #expect(link.utf8.count == 32)
        let secrets = try #require(sessions.begin(link: link, at: 159))
        #expect(sessions.begin(link: link, at: 159) == nil)
        #expect(sessions.isValid(secrets, at: 159))
        let late = sessions.makeLink(at: 100)
        #expect(sessions.begin(link: late, at: 160) == nil)
        #expect(sessions.begin(link: "", at: 100) == nil)
    }

    @Test func bothSecretsAreNeeded() {
        let sessions = Desk()
        let first = sessions.begin(at: 0)
        let second = sessions.begin(at: 0)
        #expect(sessions.isValid(first, at: 1) && sessions.isValid(second, at: 1))
        for wrong in [
            Sessions.Secrets(cookie: first.cookie, key: second.key), .init(cookie: first.cookie, key: ""),
            .init(cookie: "", key: first.key), .init(cookie: first.key, key: first.cookie), .init(cookie: "", key: ""),
        ] {
            #expect(!sessions.isValid(wrong, at: 1))
            sessions.end(wrong)
        }
        #expect(sessions.isValid(first, at: 1))
        sessions.end(first)
        #expect(!sessions.isValid(first, at: 1) && sessions.isValid(second, at: 1))
    }

    @Test func sessionEndsIfItIsNotUsedForAWeek() {
        let sessions = Desk()
        let secrets = sessions.begin(at: 0)
        let week = Sessions.sessionSeconds
        #expect(sessions.isValid(secrets, at: week - 1))
        #expect(sessions.isValid(secrets, at: 2 * week - 2))
        #expect(!sessions.isValid(secrets, at: 3 * week - 2))
    }

    @Test func thereAreNeverMoreThanSoMany() {
        let sessions = Desk()
        let links = (0...Sessions.mostLinks).map { _ in sessions.makeLink(at: 0) }
        #expect(sessions.begin(link: links[0], at: 1) == nil)
        _ = sessions.begin(link: links[1], at: 1)
        var begun: [Sessions.Secrets] = []
        for time in 0..<Int64(Sessions.mostSessions) {
            begun.append(sessions.begin(at: 10 + time))
        }
        // The first is in use; the second is the one that has to go.
        #expect(sessions.isValid(begun[0], at: 100))
        begun.append(sessions.begin(at: 101))
        #expect(sessions.isValid(begun[0], at: 102) && !sessions.isValid(begun[1], at: 102))
    }
}
