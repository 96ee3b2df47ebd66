import CachePolicy
import HTTPModel

/// Finds positions by address. For each address, it stores a hash of the path and query with the range: 32 bytes,
/// whatever the address's length.
struct AddressIndex: Sendable {
    private struct Entry: Sendable {
        /// The hash.
        let name: Int
        let range: Range<Int64>
        let position: Int32
    }

    private var entries: [Entry] = []

    /// - Parameter references: references with the ranges that players request, in order of their positions; at
    ///   most `PlaylistLimits.segments`.
    init(_ references: some Sequence<(reference: String, range: Range<Int64>?)>, base: OriginURL) {
        var directories = DirectoryMemo<String?>()
        for (position, (reference, range)) in references.enumerated() {
            guard let position = Int32(exactly: position) else { break }
            let path = Self.path(reference, base, &directories)
            guard let path else { continue }
            entries.append(Entry(name: Self.name(path), range: range ?? Self.everything, position: position))
        }
        entries.sort { ($0.name, $0.range.lowerBound, $0.position) < ($1.name, $1.range.lowerBound, $1.position) }
    }

    private static func path(_ reference: String, _ base: OriginURL, _ known: inout DirectoryMemo<String?>) -> String? {
        guard let (directory, rest) = Reference.split(reference) else { return base.resolving(reference)?.pathAndQuery }
        return known.value(for: directory) { base.resolving($0)?.pathAndQuery }.map { $0 + rest }
    }

    private static let everything: Range<Int64> = 0..<ByteNumber.greatest

    /// How many entries with the same name are examined: the same path on several hosts, or a few ranges that
    /// overlap.
    private static let tries = 64

    /// The first position that contains this byte, among those that `isRight` confirms to be at this URL.
    func position(of url: OriginURL, at byte: Int64?, isRight: (Int) -> Bool) -> Int? {
        let name = Self.name(url.pathAndQuery), byte = byte ?? 0
        var found: Int?
        var place = upperBound(name, byte) - 1
        var left = Self.tries
        while place >= 0, entries[place].name == name, left > 0 {
            let entry = entries[place]
            if entry.range.contains(byte), isRight(Int(entry.position)) { found = Int(entry.position) }
            place -= 1
            left -= 1
        }
        return found
    }

    /// The index of the first entry after those of this name that begin at this byte or before it.
    private func upperBound(_ name: Int, _ byte: Int64) -> Int {
        var low = 0, high = entries.count
        while low < high {
            let middle = low + (high - low) / 2
            let entry = entries[middle]
            if (entry.name, entry.range.lowerBound) <= (name, byte) { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// A hash of the normalised spelling of a path and query.
    private static func name(_ path: String) -> Int {
        let path = path.utf8.contains(UInt8(ascii: "#")) ? String(path.prefix { $0 != "#" }) : path
        return (path.utf8.contains(UInt8(ascii: "%")) ? PercentEncoding.normalized(path) : path).hashValue
    }
}

extension OriginURL {
    /// Whether two URLs are equal except for their percent-encoding (RFC 3986 §6.2.2).
    func isEquivalent(to other: OriginURL) -> Bool {
        self == other || normalized == other.normalized
    }
}
