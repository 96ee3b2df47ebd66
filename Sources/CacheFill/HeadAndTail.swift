/// The first and the last bytes of a resource, which are to arrive before the rest: with them, players can start a file
/// whose index is at its end.
package struct HeadAndTail: Sendable, Equatable {
    /// Bytes, at least those of the first request, whose response tells the length.
    package let head: Int64
    /// Bytes, 0 or more.
    package let tail: Int64

    /// A chunk, in bytes.
    private static let smallestHead: Int64 = 64 << 10

    package init(head: Int64, tail: Int64) { (self.head, self.tail) = (max(Self.smallestHead, head), max(0, tail)) }

    /// The range of the first request.
    var opening: Range<Int64> { 0..<head }

    /// The stretch in the order in which it should arrive: the head, the tail, and what is between them.
    func stretches(of stretch: Range<Int64>) -> [Range<Int64>] {
        let headEnd = stretch.lowerBound + min(head, Int64(stretch.count))
        let tailStart = max(headEnd, stretch.upperBound - min(tail, Int64(stretch.count)))
        return [stretch.lowerBound..<headEnd, tailStart..<stretch.upperBound, headEnd..<tailStart]
    }
}
