import ControlAPI
import HTTPModel
import Synchronization

/// Which browsers may act for the owner of the cache.
///
/// | term | meaning |
/// |---|---|
/// | link | a random text, given to the owner, which one page may exchange for a session, within a minute |
/// | session | the right of one browser to change the cache. It has two secrets: the cookie, which no script can read, and the key, which only the dashboard's own scripts can |
///
/// A cookie alone proves nothing: browsers send it to every server on any port of the same host, so that another user
/// of this machine who runs one may learn it. The key never leaves the page's origin, which includes the port. Neither
/// is written to the disk by the proxy, so all sessions end with it.
///
/// A token needs no limit of attempts: its 256 bits cannot be guessed, and whoever could use up the attempts would lock
/// the owner out.
///
/// A value without a clock; times are in seconds of one that nobody sets back.
struct DashboardSessions: Sendable {
    /// The secrets of a session.
    struct Secrets: Sendable, Equatable {
        let cookie: String
        let key: String
    }

    private struct Link {
        let text: String
        let end: Int64
    }

    private struct Session {
        let secrets: Secrets
        var lastUse: Int64

        func isOver(at now: Int64) -> Bool { now -| lastUse >= DashboardSessions.sessionSeconds }
    }

    /// How long a link is valid.
    static let linkSeconds: Int64 = 60
    /// How long a session is kept that is not used: a week.
    static let sessionSeconds: Int64 = 604_800
    /// The most links and sessions; a further one ends the oldest.
    static let (mostLinks, mostSessions) = (16, 32)
    private static let secretBytes = 16

    private var links: [Link] = []
    /// Those used last at the end.
    private var sessions: [Session] = []

    /// Makes a link.
    mutating func makeLink(at now: Int64, using generator: inout some RandomNumberGenerator) -> String {
        links.removeAll { $0.end <= now }
        if links.count >= Self.mostLinks { links.removeFirst() }
        let text = RandomSecret.make(byteCount: Self.secretBytes, using: &generator)
        links.append(Link(text: text, end: now +| Self.linkSeconds))
        return text
    }

    /// Exchanges a link for a session; the link is worthless from then on.
    /// - Returns: nil if nobody made this link, or it was used, or it is too old.
    mutating func begin(link: String, at now: Int64, using generator: inout some RandomNumberGenerator) -> Secrets? {
        guard let place = links.firstIndex(where: { RandomSecret.areEqual(link, $0.text) }) else { return nil }
        let link = links.remove(at: place)
        return now < link.end ? begin(at: now, using: &generator) : nil
    }

    /// Begins a session for someone who has shown the token.
    mutating func begin(at now: Int64, using generator: inout some RandomNumberGenerator) -> Secrets {
        sessions.removeAll { $0.isOver(at: now) }
        // In the order of their last use.
        if sessions.count >= Self.mostSessions { sessions.removeFirst() }
        let secrets = Secrets(
            cookie: RandomSecret.make(byteCount: Self.secretBytes, using: &generator),
            key: RandomSecret.make(byteCount: Self.secretBytes, using: &generator))
        sessions.append(Session(secrets: secrets, lastUse: now))
        return secrets
    }

    /// Whether both secrets are those of one session, which counts as used.
    mutating func isValid(_ secrets: Secrets, at now: Int64) -> Bool {
        guard let place = place(of: secrets), !sessions[place].isOver(at: now) else { return false }
        var session = sessions.remove(at: place)
        session.lastUse = now
        sessions.append(session)
        return true
    }

    /// Ends a session, if there is one with these secrets.
    mutating func end(_ secrets: Secrets) {
        if let place = place(of: secrets) { sessions.remove(at: place) }
    }

    private func place(of secrets: Secrets) -> Int? {
        sessions.firstIndex {
            RandomSecret.areEqual(secrets.cookie, $0.secrets.cookie)
                && RandomSecret.areEqual(secrets.key, $0.secrets.key)
        }
    }
}

/// The sessions of a proxy, for the handlers of all its loops.
final class SharedDashboardSessions: Sendable {
    private let state = Mutex(DashboardSessions())

    init() {}

    /// - Parameter body: must not call anything that waits.
    func update<Value: Sendable>(_ body: (inout DashboardSessions) -> Value) -> Value {
        state.withLock { body(&$0) }
    }
}
