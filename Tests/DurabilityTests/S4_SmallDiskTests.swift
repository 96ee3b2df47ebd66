import Foundation
import TestSupport
import Testing

extension Durability {
    /// Real disks that are full, or read-only.
    @Suite(.enabled(if: SmallDisk.obstacle == nil, "no small disk can be mounted here: \(SmallDisk.obstacle ?? "")"))
    struct SmallDiskTests {
        private let disk: SmallDisk
        private let origin: ScriptedOrigin
        private let films = (0..<12).map {
            Film(path: "/\($0).mp4", media: Media(seed: UInt64(40 + $0), size: 6_000_000 + Int64($0)))
        }

        init() throws {
            disk = try SmallDisk(size: 24_000_000)
            origin = try Durability.origin(films)
        }

        private var cache: String { "\(disk.path)/cache" }

        private func start() throws -> ProxyProcess {
            try ProxyProcess(cacheDirectory: cache, arguments: ["--max-size", "1GB", "--min-free", "4MB"])
        }

        /// Plays a film, and looks in between.
        private func play(_ film: Film, _ proxy: ProxyProcess, look: () throws -> Void = {}) throws -> String? {
            let player = try RawClient(port: proxy.port)
            try player.send(player.request(ProxyProcess.target(origin.url(film.path))))
            let head = try player.readHead()
            guard head.status == 200 else { return "\(film.path): status \(head.status)" }
            var position: Int64 = 0
            while case let bytes = try player.readBody(upTo: 128 << 10), !bytes.isEmpty {
                if let wrong = film.media.firstMismatch(bytes, at: position) {
                    return "\(film.path): wrong from offset \(wrong) on"
                }
                position += Int64(bytes.count)
                try look()
            }
            return position == film.media.size ? nil : "\(film.path): \(position) bytes"
        }

        /// A limit far beyond the disk: what must stay free does.
        @Test func mediaOfThreeTimesTheDiskPlayAndLeaveWhatMustStayFree() async throws {
            try await blocking {
                let proxy = try start()
                var least = Int64.max
                for film in films {
                    #expect(try play(film, proxy) { least = min(least, DiskUse.free(disk.path)) } == nil)
                }
                #expect(least >= 4_000_000)
                let requests = origin.requestCount(films[11].path)
                #expect(try play(films[11], proxy) == nil)
                #expect(origin.requestCount(films[11].path) == requests, "the last film is not cached")
                #expect(try proxy.process.terminate() == .exited(0))
                #expect(try CacheImage(directory: cache).compare(films).fault == nil)
            }
        }

        /// To the last byte, in the middle of a film; and later it is free again.
        @Test func aDiskThatSomebodyElseFillsDoesNotStopAFilm() async throws {
            try await blocking {
                let proxy = try start()
                #expect(try play(films[0], proxy) == nil)
                let hog = "\(disk.path)/hog"
                var isFilled = false
                #expect(
                    try play(films[1], proxy) {
                        if !isFilled { try fill(hog) }
                        isFilled = true
                    } == nil)
                for film in films[2...4] { #expect(try play(film, proxy) == nil) }

                try FileManager.default.removeItem(atPath: hog)
                #expect(try play(films[5], proxy) == nil)
                let requests = origin.requestCount(films[5].path)
                #expect(try play(films[5], proxy) == nil)
                #expect(origin.requestCount(films[5].path) == requests, "with room again, a film is not cached")
                #expect(try proxy.process.terminate() == .exited(0))
                #expect(try CacheImage(directory: cache).compare(films).fault == nil)
            }
        }

        /// Where nothing is left, not even to record what goes: while it runs, or before it starts.
        @Test(arguments: [true, false]) func aDiskThatSomebodyElseHasFilledIsGivenRoom(isRunning: Bool) async throws {
            try await blocking {
                var proxy = try start()
                for film in films[0...2] { #expect(try play(film, proxy) == nil) }
                if isRunning {
                    kill(proxy.process.pid, SIGSTOP)
                    try fill("\(disk.path)/hog")
                    kill(proxy.process.pid, SIGCONT)
                } else {
                    #expect(try proxy.process.terminate() == .exited(0))
                    try fill("\(disk.path)/hog")
                    proxy = try start()
                }
                try eventually("room on the disk") { DiskUse.free(disk.path) >= 4_000_000 }
                #expect(try play(films[2], proxy) == nil)
                #expect(try proxy.process.terminate() == .exited(0))
                #expect(try CacheImage(directory: cache).compare(films).fault == nil)
            }
        }

        /// Writes until the disk takes no more.
        private func fill(_ path: String) throws {
            let descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
            guard descriptor >= 0 else { throw SystemError("open \(path)") }
            defer { close(descriptor) }
            let bytes = [UInt8](repeating: 1, count: 64 << 10)
            while write(descriptor, bytes, bytes.count) > 0 {}
            #expect(errno == ENOSPC)
        }

        /// With a cache on it, and without.
        @Test(arguments: [true, false]) func aReadOnlyDiskIsNamedInOneLine(hasCache: Bool) async throws {
            try await blocking {
                if hasCache {
                    let proxy = try start()
                    #expect(try play(films[0], proxy) == nil)
                    #expect(try proxy.process.terminate() == .exited(0))
                }
                try disk.setReadOnly(true)
                let outcome = try ReelcacheCommand.run(["serve", "--listen", "127.0.0.1:0", "--cache-dir", cache])
                #expect(outcome.exit == .exited(1))
                #expect(outcome.stdout == "")
                let lines = outcome.stderr.split(separator: "\n")
                #expect(lines.count == 1 && lines[0].hasPrefix("reelcache: "), "\(outcome.stderr)")
                #expect(
                    lines.first?.contains(cache) == true && lines.first?.contains("Read-only file system") == true,
                    "\(outcome.stderr)")
            }
        }

        /// No room even for an empty index.
        @Test func aDiskWithoutRoomForACacheIsNamedInOneLine() async throws {
            try await blocking {
                try fill("\(disk.path)/hog")
                let outcome = try ReelcacheCommand.run(["serve", "--listen", "127.0.0.1:0", "--cache-dir", cache])
                #expect(outcome.exit == .exited(1))
                let lines = outcome.stderr.split(separator: "\n")
                #expect(lines.count == 1 && lines[0].hasPrefix("reelcache: "), "\(outcome.stderr)")
                #expect(lines.first?.contains(cache) == true, "\(outcome.stderr)")
            }
        }
    }
}
