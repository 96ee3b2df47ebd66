import Foundation
import TestSupport
import Testing

/// What a cache is worth after a crash, a power cut or trouble with the disk. One test after the other: each needs the
/// whole machine.
@Suite(.serialized) enum Durability {
    /// Sixty megabytes in all, of several sizes.
    static let films = [20_000_000, 15_000_001, 10_485_760, 8_388_607, 5_000_000, 1_000_000, 100_000].enumerated().map {
        index, size in
        Film(path: "/\(index).mp4", media: Media(seed: UInt64(100 + index), size: Int64(size)))
    }

    /// Holds a third of them.
    static let limit: Int64 = 20_000_000

    static let arguments = ["--max-size", "20MB", "--min-free", "1MB"]

    /// An origin that serves films.
    static func origin(_ films: [Film] = films) throws -> ScriptedOrigin {
        let origin = try ScriptedOrigin()
        for film in films { origin.serve(film.path, film.media) }
        return origin
    }

    /// Reads each film as a whole through a proxy.
    /// - Returns: one line for each that differs.
    static func readAll(_ films: [Film] = films, at origin: ScriptedOrigin, through proxy: ProxyProcess) throws
        -> [String]
    {
        try films.compactMap { film in
            let response = try proxy.get(origin.url(film.path))
            let difference =
                response.status == 200
                ? film.media.difference(response.body, from: 0..<film.media.size) : "status \(response.status)"
            return difference.map { "\(film.path): \($0)" }
        }
    }

    /// A number of rounds, such as `REELCACHE_CRASH_ROUNDS` sets it.
    static func rounds(_ variable: String, short: Int) -> Int {
        ProcessInfo.processInfo.environment[variable].flatMap { Int($0) } ?? short
    }
}

extension ScriptedOrigin {
    /// As if it were gone, or back: each connection ends without an answer.
    func setGone(_ isGone: Bool, for films: [Film]) {
        for film in films { script(film.path) { ($0.closesBeforeHead, $0.cutTimes) = (isGone, isGone ? .max : 0) } }
    }
}
