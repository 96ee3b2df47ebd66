import Glibc
import HTTPModel
import TestSupport

/// A resource of the simulated origin, and its versions over time.
final class Film {
    enum Validator: CaseIterable {
        /// A strong entity-tag.
        case strong
        /// A weak one: it says nothing about bytes.
        case weak
        case none
    }

    struct Version {
        let number: Int
        let length: Int64
        /// When the origin began to serve it, in nanoseconds.
        let since: UInt64
    }

    let name: String
    let validator: Validator
    let servesRanges: Bool
    /// Whether a whole answer states its length.
    let statesLength: Bool
    /// Seconds for which an answer is fresh; nil if each use is to be validated.
    let maxAge: Int64?
    private(set) var versions: [Version]
    /// Whoever requests it from now on gets no version before this one.
    var oldest = 0
    /// Bytes of it that players received, or left in their sockets.
    var received: Int64 = 0
    /// When a person removed it last, or a player's POST had it invalidated, in nanoseconds.
    var removed: UInt64 = 0
    private var patterns: [Int: [UInt8]] = [:]

    /// - Parameter isPlain: whether it is likely to lack ranges and a length.
    init(_ name: String, _ schedule: Schedule, isPlain: Bool) {
        self.name = name
        validator = schedule.pick(
            isPlain ? [.strong, .strong, .weak, .none] : [.strong, .strong, .strong, .strong, .weak, .none])
        servesRanges = schedule.chance(isPlain ? 0.6 : 0.85)
        statesLength = schedule.chance(isPlain ? 0.6 : 0.9)
        maxAge = schedule.pick([nil, 0, 2, 30, 3600, 3600])
        versions = [Version(number: 1, length: Self.length(schedule), since: 0)]
    }

    /// One as most origins serve them.
    init(_ name: String, length: Int64) {
        (self.name, validator, servesRanges, statesLength, maxAge) = (name, .strong, true, true, 3600)
        versions = [Version(number: 1, length: length, since: 0)]
    }

    private static func length(_ schedule: Schedule) -> Int64 {
        schedule.pick([1, 4095, 65_536, 300_000, 1_000_000, 1_000_000, 3_000_000]) + schedule.pick(0...70_000)
    }

    var current: Version { versions[versions.count - 1] }

    var url: String { "http://origin.test/\(name)" }

    /// The origin replaces it.
    func change(_ schedule: Schedule) {
        let length = schedule.chance(0.5) ? current.length : Self.length(schedule)
        versions.append(Version(number: current.number + 1, length: length, since: schedule.now))
    }

    /// The entity-tag of a version.
    func tag(_ version: Version) -> String? {
        switch validator {
        case .strong: "\"\(name)-\(version.number)\""
        case .weak: "W/\"\(name)-\(version.number)\""
        case .none: nil
        }
    }

    /// The versions that an answer may be of.
    func versions(tagged tag: String?) -> [Version] {
        validator == .none ? versions : versions.filter { self.tag($0) == tag }
    }

    /// Whether a version was the current one at some time since then.
    func wasCurrent(_ version: Version, since time: UInt64) -> Bool {
        guard let next = versions.first(where: { $0.number == version.number + 1 }) else { return true }
        return next.since >= time
    }

    // MARK: Bytes

    /// A prime: no chunk, extent or piece is as long, so that displaced bytes differ.
    private static let period = 65_521

    func bytes(_ range: Range<Int64>, of version: Version) -> [UInt8] {
        let pattern = pattern(version), start = Int(range.lowerBound % Int64(Self.period))
        var bytes: [UInt8] = []
        bytes.reserveCapacity(range.count)
        var place = start
        while bytes.count < range.count {
            let end = min(pattern.count, place + range.count - bytes.count)
            bytes += pattern[place..<end]
            place = 0
        }
        return bytes
    }

    /// Whether these are the bytes of a version from an offset on.
    func has(_ bytes: [UInt8], at offset: Int64, _ version: Version) -> Bool {
        guard offset + Int64(bytes.count) <= version.length else { return false }
        return pattern(version).withUnsafeBytes { pattern in
            bytes.withUnsafeBytes { bytes in
                var done = 0
                while done < bytes.count {
                    let place = Int((offset + Int64(done)) % Int64(Self.period))
                    let count = min(pattern.count - place, bytes.count - done)
                    if memcmp(pattern.baseAddress! + place, bytes.baseAddress! + done, count) != 0 { return false }
                    done += count
                }
                return true
            }
        }
    }

    private func pattern(_ version: Version) -> [UInt8] {
        if let known = patterns[version.number] { return known }
        var random = SplitMix64(
            seed: UInt64(version.number) &* 1_000_003 &+ UInt64(name.utf8.reduce(7) { $0 * 31 + Int($1) }))
        var words = [UInt64](repeating: 0, count: Self.period / 8 + 1)
        for place in words.indices { words[place] = random.next() }
        // No film begins like a playlist or a page.
        let bytes = [0, 0, 0, 1] + words.withUnsafeBytes { Array($0.prefix(Self.period - 4)) }
        patterns[version.number] = bytes
        return bytes
    }
}
