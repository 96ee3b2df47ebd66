import CachePolicy
import HTTPModel

/// Finds positions by address. For each address, it stores a hash of the path and query, and where its range begins: 16
/// bytes, whatever the address's length.
struct AddressIndex: Sendable {
    private struct Entry: Sendable {
        /// A part of the hash.
        let name: UInt32
        let position: Int32
        /// The first byte; 0 without a range.
        let first: Int64
    }

    private var entries: [Entry] = []
    /// The hosts of the addresses.
    private(set) var hosts = NamedHosts()

    /// - Parameter references: references with the ranges that players request, in order of their positions; at
    ///   most `PlaylistLimits.segments`.
    init(
        _ references: some Sequence<(reference: String, range: Range<Int64>?)>, base: OriginURL,
        within budget: WorkBudget
    ) throws(PlaylistError) {
        var directories = DirectoryMemo<String?>()
        entries.reserveCapacity(references.underestimatedCount)
        for (position, (reference, range)) in references.enumerated() {
            let path = try path(reference, base, &directories, budget)
            if let path { add(path, range?.lowerBound ?? 0, at: position) }
        }
        sort()
    }

    /// - Parameter paths: paths with their queries, each with its position.
    init(paths: some Sequence<(path: String, position: Int)>) {
        for (path, position) in paths { add(path, 0, at: position) }
        sort()
    }

    private mutating func add(_ path: String, _ first: Int64, at position: Int) {
        guard let position = Int32(exactly: position) else { return }
        entries.append(Entry(name: Self.name(path), position: position, first: first))
    }

    private mutating func sort() {
        entries.sort { ($0.name, $0.first, $0.position) < ($1.name, $1.first, $1.position) }
    }

    /// The memory that it takes, in bytes.
    var size: Int { entries.capacity * MemoryLayout<Entry>.stride } // no trap: what is in memory

    private mutating func path(
        _ reference: String, _ base: OriginURL, _ known: inout DirectoryMemo<String?>, _ budget: WorkBudget
    ) throws(PlaylistError) -> String? {
        try budget.take(reference.utf8.count)
        guard let (directory, rest) = Reference.split(reference) else {
            return note(try base.resolving(reference, within: budget))
        }
        let path = try known.value(for: directory) { name throws(PlaylistError) in
            note(try base.resolving(name, within: budget))
        }
        guard let path else { return nil }
        try budget.take(path.utf8.count)
        return path + rest
    }

    /// - Returns: its path and query.
    private mutating func note(_ url: OriginURL?) -> String? {
        guard let url else { return nil }
        hosts.insert(url.host)
        return url.pathAndQuery
    }

    /// How many entries with the same name are examined: the same path on several hosts, or a few ranges that
    /// overlap.
    private static let tries = 64

    /// The first position that contains this byte, among those that `isRight` confirms to be at this URL, and to end
    /// after the byte.
    func position(
        of url: OriginURL, at byte: Int64?, isRight: (Int) throws(PlaylistError) -> Bool
    ) throws(PlaylistError) -> Int? {
        guard !entries.isEmpty else { return nil }
        let name = Self.name(url.pathAndQuery), byte = byte ?? 0
        var found: Int?
        var place = upperBound(name, byte) - 1
        var left = Self.tries
        while place >= 0, entries[place].name == name, left > 0 {
            let entry = entries[place]
            if try isRight(Int(entry.position)) { found = Int(entry.position) }
            place -= 1
            left -= 1
        }
        return found
    }

    /// The index of the first entry after those of this name that begin at this byte or before it.
    private func upperBound(_ name: UInt32, _ byte: Int64) -> Int {
        var low = 0, high = entries.count
        while low < high {
            let middle = low + (high - low) / 2
            let entry = entries[middle]
            if (entry.name, entry.first) <= (name, byte) { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// A hash of the normalised spelling of a path and query.
    private static func name(_ path: String) -> UInt32 {
        let isPlain = path.utf8.withContiguousStorageIfAvailable {
            $0.allSatisfy { $0 != UInt8(ascii: "#") && $0 != UInt8(ascii: "%") }
        }
        guard isPlain != true else { return UInt32(truncatingIfNeeded: path.hashValue) }
        return UInt32(truncatingIfNeeded: PercentEncoding.normalized(String(path.prefix { $0 != "#" })).hashValue)
    }
}

/// The hosts that a text names; of very many, only that they are.
package struct NamedHosts: Sendable {
    /// Stands for every host.
    package static let any = ""
    private static let most = 64

    package private(set) var names: Set<String> = []

    package init() {}

    package mutating func insert(_ host: String) {
        guard !names.contains(Self.any) else { return }
        names.insert(host)
        if names.count > Self.most { names = [Self.any] }
    }
}

extension OriginURL {
    /// Resolves a reference, at the cost of both.
    func resolving(_ reference: String, within budget: WorkBudget) throws(PlaylistError) -> OriginURL? {
        try budget.take((pathAndQuery.utf8.count &+ reference.utf8.count) / 4 &+ 1)
        return resolving(reference)
    }

    /// Whether a reference leads to a URL, or to one with another percent-encoding; at the cost of both.
    func leads(by reference: String, to other: OriginURL, within budget: WorkBudget) throws(PlaylistError) -> Bool {
        try budget.take((pathAndQuery.utf8.count &+ reference.utf8.count) / 4 &+ 1)
        return leads(by: reference, to: other) || resolving(reference)?.isEquivalent(to: other) ?? false
    }

    /// Whether two URLs are equal except for their percent-encoding (RFC 3986 §6.2.2).
    func isEquivalent(to other: OriginURL) -> Bool {
        self == other || normalized == other.normalized
    }
}
