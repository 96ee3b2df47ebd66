/// The path of a held file.
package struct HeldFile: Codable, Sendable {
    /// Relative to the cache directory.
    package let path: String
    package let length: Int64
    /// The content codings in which its origin sent it, although the proxy asks for none; nil for none.
    package let codings: [String]?

    package init(path: String, length: Int64, codings: [String]?) {
        (self.path, self.length, self.codings) = (path, length, codings)
    }
}

extension HeldFile {
    /// Ranges of a held file that have become present since the last report.
    package struct Growth: Codable, Sendable {
        /// The first byte of each range and the byte after its last, alternating.
        package let present: [Int64]

        package init(_ ranges: [Range<Int64>]) { present = ranges.flatMap { [$0.lowerBound, $0.upperBound] } }

        /// The ranges that are valid for a file of this length.
        package func ranges(below length: Int64) -> [Range<Int64>] {
            stride(from: 0, to: present.count - 1, by: 2).compactMap { place in
                let (first, end) = (present[place], present[place + 1])
                return 0 <= first && first < end && end <= length ? first..<end : nil // no trap: in order
            }
        }
    }
}
