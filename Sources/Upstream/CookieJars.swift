import CachePolicy
import Glibc
import HTTPModel
import Synchronization

/// The cookies that origins have set, kept apart by presentation, in memory.
///
/// Where players name origins by the proxy, the proxy is the origins' client, and keeps their cookies as a browser
/// does. What the answers of one presentation have set goes with its parts, keys and renewals only.
package final class CookieJars: Sendable {
    /// Cookies as lines of a cookie file in Netscape's form, which curl reads and writes: curl decides which cookies it
    /// accepts, and what goes where (RFC 6265bis). A value.
    package struct Jar: Sendable, Equatable {
        package private(set) var lines: [String]

        /// Browsers keep at least 50 cookies of a host, of up to 4,096 bytes each.
        private static let mostLines = 64
        private static let mostBytes = 64 << 10

        package init(_ lines: [String] = []) { self.lines = lines }

        /// Those that a host may get, if curl agrees.
        func lines(for host: String) -> [String] {
            lines.filter { line in
                let domain = Self.visible(line).prefix { $0 != "\t" }.utf8.drop { $0 == UInt8(ascii: ".") }
                guard host.utf8.count > domain.count else { return ASCII.equalIgnoringCase(domain, host.utf8) }
                return ASCII.equalIgnoringCase(host.utf8.suffix(domain.count), domain)
                    && host.utf8.dropLast(domain.count).last == UInt8(ascii: ".")
            }
        }

        /// Takes what an exchange has changed: others may have changed other cookies meanwhile.
        /// - Parameters:
        ///   - former: those with which it began.
        ///   - current: those that it left.
        mutating func change(from former: [String], to current: [String]) {
            let news = current.filter { !former.contains($0) }
            let changed = Set((former.filter { !current.contains($0) } + news).map(Self.identity))
            lines = lines.filter { !changed.contains(Self.identity($0)) } + news
        }

        /// Drops what has expired, and the oldest beyond what is kept of one presentation.
        fileprivate mutating func bound() {
            let now = Int64(time(nil))
            lines.removeAll { Self.hasExpired($0, now: now) }
            var bytes = lines.reduce(0) { $0 +| $1.utf8.count }
            while bytes > Self.mostBytes || lines.count > Self.mostLines { bytes -|= lines.removeFirst().utf8.count }
        }

        /// What tells cookies apart: domain, path and name (RFC 6265bis §5.7).
        private static func identity(_ line: String) -> [Substring] {
            let columns = columns(line)
            return columns.count > 5 ? [columns[0], columns[2], columns[5]] : columns
        }

        private static func columns(_ line: String) -> [Substring] {
            visible(line).split(separator: "\t", omittingEmptySubsequences: false)
        }

        private static func visible(_ line: String) -> Substring {
            line.hasPrefix(hidden) ? line.dropFirst(hidden.count) : line[...]
        }

        /// Whether its time is over; one of a session has none.
        private static func hasExpired(_ line: String, now: Int64) -> Bool {
            let columns = columns(line)
            return columns.count > 4 && ASCII.decimal(columns[4].utf8).map { $0 > 0 && $0 <= now } == true
        }

        /// Gives cookies that state no path the one of their URL (RFC 6265bis §5.1.4): curl has not seen it.
        /// - Parameters:
        ///   - fields: of the response that has set them.
        ///   - target: path and query of its URL.
        static func place(_ lines: inout [String], by fields: HeaderFields, from target: String) {
            let path = target.prefix { $0 != "?" }
            guard let end = path.lastIndex(of: "/"), end > path.startIndex else { return }
            let unplaced = fields.all("Set-Cookie").map { $0.split(separator: ";") }.filter { pieces in
                !pieces.dropFirst().contains { ASCII.equalIgnoringCase(ASCII.trimmed($0.prefix { $0 != "=" }), "path") }
            }
            let names = Set(unplaced.compactMap { $0.first.map { ASCII.trimmed($0.prefix { $0 != "=" }) } })
            for place in lines.indices {
                var columns = lines[place].split(separator: "\t", omittingEmptySubsequences: false)
                guard columns.count > 5, columns[2] == "/", names.contains(columns[5]) else { continue }
                columns[2] = path[..<end]
                lines[place] = columns.joined(separator: "\t")
            }
        }

        /// The names of cookies in lines.
        static func names(in lines: [String]) -> Set<Substring> {
            Set(lines.map(columns).compactMap { $0.count > 5 ? $0[5] : nil })
        }

        /// Begins the line of a cookie that scripts may not read, which means nothing here.
        private static let hidden = "#HttpOnly_"
    }

    private struct State {
        /// Each with the number of its last use.
        var jars: [CacheKey: (jar: Jar, use: UInt64)] = [:]
        var uses: UInt64 = 0
    }

    private let state = Mutex(State())
    private let isUsed = Atomic(false)

    /// How many presentations have cookies; one that was not used for longest loses its own first.
    private static let mostJars = 128

    package init() {}

    /// Those of a presentation.
    func jar(of key: CacheKey) -> Jar {
        guard isUsed.load(ordering: .relaxed) else { return Jar() }
        return state.withLock { state in
            state.uses += 1 // no trap: counts calls
            state.jars[key]?.use = state.uses
            return state.jars[key]?.jar ?? Jar()
        }
    }

    /// See `Jar.change`.
    func change(_ key: CacheKey, from former: [String], to current: [String]) {
        isUsed.store(true, ordering: .relaxed)
        state.withLock { state in
            state.uses += 1 // no trap: counts calls
            var jar = state.jars[key]?.jar ?? Jar()
            jar.change(from: former, to: current)
            jar.bound()
            state.jars[key] = jar.lines.isEmpty ? nil : (jar, state.uses)
            guard state.jars.count > Self.mostJars else { return }
            if let oldest = state.jars.min(by: { $0.value.use < $1.value.use })?.key { state.jars[oldest] = nil }
        }
    }

    /// The cookies with which a request begins, and where those are kept that it leaves.
    package struct Use: Sendable {
        let jars: CookieJars
        /// That of the presentation; of the resource itself if it belongs to none.
        let key: CacheKey
        /// Lines of a cookie file; what origins set goes before them.
        private let given: [String]

        package init(_ jars: CookieJars, of key: CacheKey, given: [String]) {
            (self.jars, self.key, self.given) = (jars, key, given)
        }

        /// Whether there are none, for any host.
        package var isEmpty: Bool { given.isEmpty && jars.jar(of: key).lines.isEmpty }

        var jar: Jar { Jar(given + jars.jar(of: key).lines) }
    }
}
