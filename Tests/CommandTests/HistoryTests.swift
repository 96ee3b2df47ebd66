import Foundation
import TestSupport
import Testing

/// The history of the counters in a cache directory, whatever happens to the process and to its file.
@Suite struct HistoryTests {
    private let directory: TemporaryDirectory
    private let origin: ScriptedOrigin

    init() throws {
        directory = try TemporaryDirectory()
        origin = try ScriptedOrigin()
        origin.serve("/film.mp4", Media(seed: 6, size: 100_000))
    }

    private var cache: String { directory.file("cache") }
    private var file: String { cache + "/history" }

    private func play(_ proxy: ProxyProcess) throws {
        #expect(try proxy.get(origin.url("/film.mp4")).status == 200)
    }

    /// Plays once, and stops in order.
    private func playAndStop() throws {
        let proxy = try ProxyProcess(cacheDirectory: cache)
        try play(proxy)
        #expect(try proxy.process.terminate() == .exited(0))
    }

    /// The requests of the last month.
    private func requests(_ proxy: ProxyProcess) throws -> Int {
        let body = try proxy.get("/api/v1/history?span=month").body
        let history = try #require(JSONSerialization.jsonObject(with: Data(body)) as? [String: Any])
        let periods = try #require(history["periods"] as? [[String: Any]])
        return periods.compactMap { $0["requests"] as? Int }.reduce(0, +)
    }

    @Test func killLosesNothingThatWasStored() throws {
        try playAndStop()
        let killed = try ProxyProcess(cacheDirectory: cache)
        #expect(try requests(killed) == 1)
        #expect(try killed.process.killNow() == .signalled(SIGKILL))
        let next = try ProxyProcess(cacheDirectory: cache)
        try play(next)
        #expect(try requests(next) == 2)
        #expect(!next.process.stderr.contains("the history"))
    }

    @Test func fileIsPrivateSmallAndCounted() throws {
        try playAndStop()
        let attributes = try FileManager.default.attributesOfItem(atPath: file)
        #expect(attributes[.posixPermissions] as? Int == 0o600)
        #expect(attributes[.size] as? Int == 512 * 1021)
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: file)
        _ = try ProxyProcess(cacheDirectory: cache)
        #expect(try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int == 0o600)
    }

    /// A damage of the file that makes it unusable.
    enum Damage: CaseIterable {
        case noise, short, directory, link
    }

    @Test(arguments: Damage.allCases) func fileThatCannotBeReadIsSetAsideAndTheProxyGoesOn(damage: Damage) throws {
        try playAndStop()
        let url = URL(fileURLWithPath: file)
        switch damage {
        case .noise: try Data((0..<512 * 1021).map { UInt8(truncatingIfNeeded: $0 &* 7) }).write(to: url)
        case .short: try Data(contentsOf: url).prefix(1000).write(to: url)
        case .directory:
            try FileManager.default.removeItem(at: url)
            try FileManager.default.createDirectory(at: url, withIntermediateDirectories: false)
        case .link:
            try FileManager.default.removeItem(at: url)
            try FileManager.default.createSymbolicLink(atPath: file, withDestinationPath: "/dev/null")
        }
        let proxy = try ProxyProcess(cacheDirectory: cache)
        try play(proxy)
        #expect(try requests(proxy) == 1)
        #expect(try proxy.process.terminate() == .exited(0))
        let lines = proxy.process.stderr.split(separator: "\n")
        #expect(lines.count == 1 && lines.first?.contains("the history in \(file) cannot be read") == true, "\(lines)")
        #expect(lines.first?.contains("it is now \(file).damaged") == true)
        #expect(FileManager.default.fileExists(atPath: file + ".damaged") || damage == .link)
        // And the next one is sound.
        let next = try ProxyProcess(cacheDirectory: cache)
        #expect(try requests(next) == 1 && next.process.stderr == "")
    }

    @Test func damagedPeriodsAreLeftOut() throws {
        try playAndStop()
        var bytes = try Data(contentsOf: URL(fileURLWithPath: file))
        // One period in each ring.
        let written = stride(from: 512, to: bytes.count, by: 512).filter {
            bytes[$0 + 8] != 0 || bytes[$0 + 9] != 0 || bytes[$0 + 10] != 0
        }
        #expect((3...6).contains(written.count))
        for offset in written { bytes[offset + 30] ^= 1 }
        try bytes.write(to: URL(fileURLWithPath: file))
        let proxy = try ProxyProcess(cacheDirectory: cache)
        #expect(try requests(proxy) == 0)
        #expect(proxy.process.stderr.contains("has \(written.count) damaged periods, which are left out"))
    }

    @Test(.enabled(if: SmallDisk.obstacle == nil, "\(SmallDisk.obstacle ?? "")"))
    func fullDiskIsToldOnceAndEndsNothing() throws {
        let disk = try SmallDisk(size: 24 << 20)
        let cache = disk.path + "/cache"
        let proxy = try ProxyProcess(cacheDirectory: cache, arguments: ["--max-size", "16MB", "--min-free", "0"])
        try play(proxy)
        #expect(try requests(proxy) == 1)
        // Another program takes all that is left.
        let filler = try FileHandle(
            forWritingTo: { () throws -> URL in
                let url = URL(fileURLWithPath: disk.path + "/filler")
                #expect(FileManager.default.createFile(atPath: url.path, contents: nil))
                return url
            }())
        while (try? filler.write(contentsOf: Data(count: 4096))) != nil {}
        #expect(try requests(proxy) == 1)
        #expect(try proxy.process.terminate() == .exited(0))
        let lines = proxy.process.stderr.split(separator: "\n").filter { $0.contains("the history cannot be stored") }
        #expect(lines.count == 1 && lines.first?.contains("No space left on device") == true, "\(proxy.process.stderr)")
    }
}
