import Foundation
import TestSupport

/// Players that read films through a proxy, at random places and at once, and compare every byte.
final class Audience: Sendable {
    struct Report: Sendable {
        var bytes: Int64 = 0
        /// One line for each thing that was not as it should be: a wrong byte, a cut, a status.
        var faults: [String] = []
        /// The most by which the cache was over its limit.
        var overshoot: Int64 = 0
    }

    private struct State: Sendable {
        var report = Report()
        /// Where `report.bytes` ends this reading.
        var bound: Int64 = 0
        var isOver = false
    }

    private let films: [Film]
    private let origin: ScriptedOrigin
    private let proxy: ProxyProcess
    private let measure: (@Sendable () -> Int64)?
    private let state = Monitor(State())

    /// - Parameter measure: asked again and again by how many bytes the cache is over its limit.
    init(
        _ films: [Film], at origin: ScriptedOrigin, through proxy: ProxyProcess, measure: (@Sendable () -> Int64)? = nil
    ) {
        (self.films, self.origin, self.proxy, self.measure) = (films, origin, proxy, measure)
    }

    /// What was seen until now.
    var report: Report { state.read(\.report) }

    /// Reads until all together have so many bytes more, or until the proxy is killed.
    /// - Parameter atEnd: called as soon as they have, while the others still read.
    func read(_ bytes: Int64, players: Int = 4, random: inout SplitMix64, atEnd: @escaping @Sendable () -> Void = {})
        throws
    {
        let seeds = (0..<players).map { _ in random.next() }
        state.update { ($0.bound, $0.isOver) = ($0.report.bytes + bytes, false) }
        _ = try concurrently(players) { index in
            var random = SplitMix64(seed: seeds[index])
            while !self.state.read(\.isOver) {
                let (film, range, count) = self.choose(&random)
                guard let fault = self.play(film, range, count, atEnd) else { continue }
                return self.state.update { $0.report.faults.append(fault) }
            }
        }
    }

    /// A range, and how much of it is read before the player leaves.
    private func choose(_ random: inout SplitMix64) -> (Film, Range<Int64>, Int64) {
        let film = films[Int.random(in: 0..<films.count, using: &random)], size = film.media.size
        let start = Int64.random(in: 0..<4, using: &random) == 0 ? 0 : Int64.random(in: 0..<size, using: &random)
        let longest: Int64 = [1000, 200_000, 2_000_000, 8_000_000][Int.random(in: 0..<4, using: &random)]
        let count = Int64.random(in: 1...min(longest, size - start), using: &random)
        // One in three asks for all that follows, and leaves in the middle of it.
        let end = Int.random(in: 0..<3, using: &random) == 0 ? size : start + count
        return (film, start..<end, count)
    }

    private func play(_ film: Film, _ range: Range<Int64>, _ count: Int64, _ atEnd: () -> Void) -> String? {
        let name = "\(film.path) \(range)"
        do {
            let player = try RawClient(port: proxy.port)
            defer { player.close() }
            try player.send(player.request(ProxyProcess.target(origin.url(film.path)), range: range.rangeField))
            let head = try player.readHead()
            guard head.status == 206 else { return "\(name): \(head.status)" }
            var position = range.lowerBound
            while position < range.lowerBound + count, !state.read(\.isOver) {
                let bytes = try player.readBody(upTo: Int(min(256 << 10, range.lowerBound + count - position)))
                if bytes.isEmpty { return "\(name): ended at \(position)" }
                if let wrong = film.media.firstMismatch(bytes, at: position) {
                    return "\(name): wrong from \(wrong) on, \(head.headers["Cache-Status"] ?? "")"
                }
                position += Int64(bytes.count)
                took(bytes.count, atEnd)
            }
            return nil
        } catch {
            // A connection may end before the system has told of the death behind it.
            if (try? proxy.process.waitForExit(andOutput: false)) == .signalled(SIGKILL) {
                state.update { $0.isOver = true }
                return nil
            }
            return "\(name): \(error); \(proxy.process.stderr)"
        }
    }

    private func took(_ count: Int, _ atEnd: () -> Void) {
        let overshoot = measure?() ?? 0
        let isLast = state.update { state in
            state.report.bytes += Int64(count)
            state.report.overshoot = max(state.report.overshoot, overshoot)
            guard !state.isOver, state.report.bytes >= state.bound else { return false }
            state.isOver = true
            return true
        }
        if isLast { atEnd() }
    }
}
