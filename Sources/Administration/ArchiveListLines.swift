import DiskCache
import HTTPModel

/// The lines of another node's list, which arrives in pieces of any size, in groups that are looked at together. The
/// last line has the sums and is no resource: so the last one that has come is held back, wherever a piece ends. A value.
struct ArchiveListLines {
    /// Limits a line, in bytes.
    let longest: Int
    /// Whole lines but the last.
    private var group: [UInt8] = []
    /// The last whole line.
    private var last: [UInt8] = []
    /// The beginning of the next line.
    private var rest: [UInt8] = []

    init(longest: Int) { self.longest = longest }

    /// - Returns: the groups that are full, each with less than twice the longest line; nil if a line is too long.
    mutating func take(_ bytes: some Collection<UInt8>) -> [[UInt8]]? {
        rest.append(contentsOf: bytes)
        var (groups, start): ([[UInt8]], Int) = ([], 0)
        while let end = rest[start...].firstIndex(of: ASCII.lineFeed) {
            guard end - start < longest else { return nil }
            group += last
            last = Array(rest[start...end])
            start = end + 1
            guard group.count >= longest / 2 else { continue }
            groups.append(group)
            group = []
        }
        rest.removeFirst(start)
        return rest.count < longest ? groups : nil
    }

    /// The list has ended.
    /// - Returns: the lines that are left, and the sums; nil if these are missing.
    func finish() -> (lines: [UInt8], end: ArchiveListEnd)? {
        guard rest.isEmpty, let end = ArchiveListEnd(line: last) else { return nil }
        return (group, end)
    }
}
