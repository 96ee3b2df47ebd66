import HTTPModel

/// Which bytes of a resource were read: players seek, and often read the end of a file first, so only distinct bytes
/// count.
///
///     resource   |=========|----|====|=======|-----|
///     was read    ▓▓▓▓▓▓▓▓▓      ▓▓▓▓ ▓▓▓▓▓▓▓         three quarters of all bytes: it was played
package struct ReadRanges: Sendable, Equatable {
    /// The most ranges. Beyond it the shortest is forgotten, and its bytes count again when they are read again.
    package static let most = 64

    /// In order; neither touching nor overlapping.
    package private(set) var ranges: [Range<Int64>] = []

    package init() {}

    /// The number of bytes that were read.
    package var count: Int64 { ranges.reduce(0) { $0 +| Int64($1.count) } }

    /// The bytes that make a resource played.
    package static func threeQuarters(of length: Int64) -> Int64 {
        length -| length / 4 // no trap: not by 0
    }

    /// Adds a range, joined with those that it touches.
    package mutating func insert(_ range: Range<Int64>) {
        guard !range.isEmpty else { return }
        guard let last = ranges.last else { return ranges.append(range) }
        // Nearly all of them: again, or from there on.
        if last.lowerBound <= range.lowerBound, range.lowerBound <= last.upperBound {
            ranges[ranges.count - 1] = last.lowerBound..<max(last.upperBound, range.upperBound) // no trap: from there
            return
        }
        let touching = ranges.filter { $0.lowerBound <= range.upperBound && range.lowerBound <= $0.upperBound }
        let start = touching.first.map { min($0.lowerBound, range.lowerBound) } ?? range.lowerBound
        let end = touching.last.map { max($0.upperBound, range.upperBound) } ?? range.upperBound
        let joined = Range(from: start, upTo: end) ?? range
        ranges.removeAll { joined.lowerBound <= $0.lowerBound && $0.upperBound <= joined.upperBound }
        ranges.insert(joined, at: ranges.firstIndex { $0.lowerBound > joined.lowerBound } ?? ranges.endIndex)
        if ranges.count > Self.most, let shortest = ranges.indices.min(by: { ranges[$0].count < ranges[$1].count }) {
            ranges.remove(at: shortest)
        }
    }

    /// The offset after this many further unread bytes; nil if there are fewer.
    /// - Parameter length: of the resource.
    package func place(from offset: Int64, missing: Int64, of length: Int64) -> Int64? {
        var (place, missing) = (offset, missing)
        for range in ranges where range.upperBound > place {
            let unread = max(0, range.lowerBound -| place)
            if missing <= unread { return place +| missing }
            missing = missing -| unread
            place = range.upperBound
        }
        let end = place +| missing
        return end <= length ? end : nil
    }

    // MARK: As text

    /// As the index stores it: `0-99,200-299`, each with its last byte.
    package var text: String {
        ranges.map { "\($0.lowerBound)-\($0.upperBound -| 1)" }.joined(separator: ",")
    }

    /// Takes over what a text says, as far as it can be read.
    package mutating func insert(_ text: String) {
        for part in text.split(separator: ",").prefix(Self.most) {
            let ends = part.split(separator: "-", omittingEmptySubsequences: false).map { Int64($0) }
            if ends.count == 2, let first = ends[0], let last = ends[1], let range = Range(from: first, upTo: last +| 1)
            {
                insert(range)
            }
        }
    }
}
