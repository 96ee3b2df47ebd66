import Foundation
import TestSupport
import Testing

extension Durability {
    /// The power goes while a cache fills and evicts: what the disk then holds is right, or known not to be there.
    @Suite struct PowerLossTests {
        private let directory: TemporaryDirectory
        private let origin: ScriptedOrigin

        init() throws {
            directory = try TemporaryDirectory()
            origin = try Durability.origin()
        }

        /// What is being done when the power goes.
        private enum Phase: CaseIterable {
            case evicting, starting, syncing, stopping, filling, evictingLong, stopped

            /// The moment of the kill, as the layer sees it, from the program's beginning or from when it serves; nil
            /// where it comes from outside.
            func moment(_ random: inout SplitMix64) -> FaultLayer.Moment? {
                let more = UInt64.random(in: 0...20, using: &random)
                return switch self {
                case .starting: .init(count: .random(in: 1...60, using: &random))
                case .filling: .init(kind: "w", count: .random(in: 60...1500, using: &random), more: more)
                case .syncing: .init(kind: "s", count: .random(in: 1...20, using: &random), more: more)
                case .evicting: .init(kind: "p", count: .random(in: 1...20, using: &random), more: more)
                case .stopping, .evictingLong, .stopped: nil
                }
            }
        }

        /// One run of a proxy, as it was recorded.
        private struct Run {
            /// The directory before it, and at its end.
            let before, after: String
            let log: FaultLog
            var films = Durability.films
        }

        private struct Tally {
            var images = 0, chunks = 0, wrong = 0
        }

        @Test func noChunkIsCalledPresentThatThePowerTook() async throws {
            try await blocking {
                var random = SplitMix64.forTest("noChunkIsCalledPresentThatThePowerTook")
                var tally = Tally()
                let rounds = Durability.rounds("REELCACHE_POWER_ROUNDS", short: 5)
                var before = directory.file("0")
                try FileManager.default.createDirectory(atPath: before, withIntermediateDirectories: false)
                for round in 0..<rounds {
                    let phase = Phase.allCases[round % Phase.allCases.count], name = "round \(round), \(phase)"
                    let run = try run(from: before, in: directory.file("\(round)-live"), phase, &random)
                    // Each run goes on from what the last power cut has left.
                    before = directory.file("\(round + 1)")
                    try judge(run, name, last: before, &tally, &random)
                    try open(before, name)
                    for path in [run.before, run.after] { try FileManager.default.removeItem(atPath: path) }
                }
                print(
                    "power lost: \(rounds) rounds, \(tally.images) images, \(tally.chunks) chunks compared, \(tally.wrong) wrong"
                )
                #expect(tally.chunks > 0)
            }
        }

        /// Plays, above the layer, in a copy of a directory.
        /// - Parameter moment: of the kill, in the place of the phase's.
        private func run(
            from before: String, in live: String, _ phase: Phase, at moment: FaultLayer.Moment? = nil,
            _ random: inout SplitMix64
        ) throws -> Run {
            _ = try CacheImage.copy(of: before, to: live)
            let layer = try FaultLayer(watching: live, isRecording: true)
            let moment = moment ?? phase.moment(&random)
            if phase == .starting, let moment { layer.kill(at: moment) }
            let proxy: ProxyProcess
            do {
                proxy = try ProxyProcess(
                    cacheDirectory: live, arguments: Durability.arguments, environment: layer.environment)
            } catch  where phase == .starting && layer.hasKilled {
                return Run(before: before, after: live, log: try layer.log)
            }
            if phase != .starting, let moment { layer.kill(at: moment) }
            let bytes = Int64.random(in: 20_000_000...45_000_000, using: &random)
            let audience = Audience(Durability.films, at: origin, through: proxy)
            try audience.read(bytes, random: &random) {
                if phase != .stopping && phase != .stopped { proxy.process.signal(SIGKILL) }
            }
            #expect(audience.report.faults == [])
            if phase == .stopping { layer.kill(at: .init(count: .random(in: 1...40, using: &random))) }
            _ = phase == .stopping || phase == .stopped ? try proxy.process.terminate() : try proxy.process.killNow()
            return Run(before: before, after: live, log: try layer.log)
        }

        /// Many at once are made durable by one call.
        @Test func noChunkOfManySmallFilesIsCalledPresentThatThePowerTook() async throws {
            try await blocking {
                var random = SplitMix64.forTest("noChunkOfManySmallFilesIsCalledPresentThatThePowerTook")
                let films = (0..<300).map {
                    Film(path: "/small/\($0)", media: Media(seed: UInt64(500 + $0), size: 30_000))
                }
                for film in films { origin.serve(film.path, film.media) }
                let (before, live) = (directory.file("before"), directory.file("live"))
                for path in [before, live] {
                    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
                }
                let layer = try FaultLayer(watching: live, isRecording: true)
                let proxy = try ProxyProcess(
                    cacheDirectory: live, arguments: Durability.arguments, environment: layer.environment)
                // So many that one checkpoint has many of them.
                let faults = try concurrently(16) { worker in
                    try Durability.readAll(
                        stride(from: worker, to: films.count, by: 16).map { films[$0] }, at: origin, through: proxy)
                }
                #expect(faults.flatMap { $0 } == [])
                try eventually("one call for many") {
                    try layer.log.records.contains { if case .syncAll = $0.change { true } else { false } }
                }
                try proxy.waitForStatistics("a checkpoint") { $0.cache.checkpoints > 0 }
                #expect(try proxy.process.killNow() == .signalled(SIGKILL))

                let run = Run(before: before, after: live, log: try layer.log, films: films)
                var tally = Tally()
                try judge(run, "small files", last: directory.file("last"), &tally, &random)
                #expect(tally.chunks > 0)
            }
        }

        /// Compares images of several moments of a run with the media, before anything could repair them.
        /// - Parameter last: where the image of the run's end stays.
        private func judge(_ run: Run, _ name: String, last: String, _ tally: inout Tally, _ random: inout SplitMix64)
            throws
        {
            for index in 0..<6 {
                let count = index == 0 ? run.log.records.count : Self.moment(in: run.log, &random)
                let image = CacheImage(directory: index == 0 ? last : directory.file("image"))
                try PowerLoss(base: run.before, log: run.log, after: count).makeImage(image.directory, .random, &random)
                let findings = try image.compare(run.films)
                #expect(findings.fault == nil, "\(name), after \(count) of \(run.log.records.count) records")
                (tally.images, tally.chunks, tally.wrong) = (
                    tally.images + 1, tally.chunks + findings.chunks, tally.wrong + findings.wrong.count
                )
                if index > 0 { try FileManager.default.removeItem(atPath: image.directory) }
            }
        }

        /// Any, but rather soon after a hole, a sync or a change of name: there the order counts.
        private static func moment(in log: FaultLog, _ random: inout SplitMix64) -> Int {
            let turns = log.records.indices.filter { index in
                switch log.records[index].change {
                case .punch, .sync, .syncAll, .unlink, .rename, .truncate: true
                default: false
                }
            }
            guard !turns.isEmpty, Int.random(in: 0..<4, using: &random) > 0 else {
                return Int.random(in: 0...log.records.count, using: &random)
            }
            return min(
                log.records.count,
                turns[Int.random(in: 0..<turns.count, using: &random)] + Int.random(in: 0...6, using: &random))
        }

        /// A proxy starts on the image, serves what it has without the origin, and all with it.
        private func open(_ image: String, _ name: String) throws {
            let present = try CacheImage(directory: image).presentChunks(of: Durability.films).runs
            let proxy = try ProxyProcess(cacheDirectory: image, arguments: Durability.arguments)
            origin.setGone(true, for: Durability.films)
            for run in present {
                let response = try proxy.get(origin.url(run.film.path), range: run.range)
                #expect(
                    response.status == 206 && run.film.media.difference(response.body, from: run.range) == nil,
                    "\(name), \(run.film.path) \(run.range)")
            }
            origin.setGone(false, for: Durability.films)
            #expect(try Durability.readAll(at: origin, through: proxy) == [], "\(name)")
            #expect(try proxy.process.killNow() == .signalled(SIGKILL))
            #expect(
                try CacheImage(directory: image).compare(Durability.films).fault == nil, "\(name), killed after that")
        }

        // MARK: The model itself

        /// With nothing lost, the image is the directory: the layer sees all that is done, in its order.
        @Test(arguments: [false, true]) func theLogTellsAllThatWasDone(isKilled: Bool) async throws {
            try await blocking {
                var random = SplitMix64.forTest("theLogTellsAllThatWasDone")
                let (before, live) = (directory.file("before"), directory.file("live"))
                try FileManager.default.createDirectory(atPath: before, withIntermediateDirectories: false)
                // One that the layer itself surely sees: from outside, the kill may come between a write and the record
                // of it.
                let moment =
                    isKilled ? FaultLayer.Moment(kind: "w", count: .random(in: 100...140, using: &random)) : nil
                let run = try run(from: before, in: live, isKilled ? .filling : .stopped, at: moment, &random)
                let image = directory.file("image")
                try PowerLoss(base: run.before, log: run.log).makeImage(image, .kept, &random)
                #expect(try Self.files(image) == Self.files(live))
                for name in try Self.files(live) {
                    #expect(
                        FileManager.default.contentsEqual(atPath: "\(image)/\(name)", andPath: "\(live)/\(name)"),
                        "\(name)")
                }
            }
        }

        private static func files(_ directory: String) throws -> [String] {
            try FileManager.default.subpathsOfDirectory(atPath: directory).filter { !$0.hasSuffix("-shm") }.sorted()
        }
    }
}
