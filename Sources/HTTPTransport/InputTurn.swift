import HTTPModel

/// A connection's turn at its input: the bytes that have arrived are used, request by request, before the loop's other
/// connections get their turn.
struct InputTurn {
    /// What is yet to be used.
    private(set) var bytes = UnsafeRawBufferPointer(start: nil, count: 0)
    private(set) var isRunning = false
    /// How many more requests are answered in this turn.
    private(set) var requestsLeft = 0
    /// How many bytes there were when they did not contain a whole head.
    private var incompleteHead = 0

    /// Up to this many bytes, a head is parsed again with each piece that arrives: invalid ones are answered at once.
    static let shortHead = 2048

    mutating func begin(_ bytes: UnsafeRawBufferPointer, requests: Int) {
        (self.bytes, isRunning, requestsLeft) = (bytes, true, requests)
    }

    /// - Returns: how many bytes at the end are left for later.
    mutating func end() -> Int {
        defer { bytes = UnsafeRawBufferPointer(start: nil, count: 0) }
        isRunning = false
        return bytes.count
    }

    mutating func drop(_ count: Int) { bytes = UnsafeRawBufferPointer(rebasing: bytes[count...]) }

    mutating func dropAll() { drop(bytes.count) }

    var mayTakeHead: Bool { !bytes.isEmpty && requestsLeft > 0 }

    /// Takes a head of this many bytes.
    mutating func takeHead(_ count: Int) {
        drop(count)
        requestsLeft -= 1
        incompleteHead = 0
    }

    /// Notes that the bytes contain no whole head.
    mutating func noteIncompleteHead() { incompleteHead = bytes.count }

    /// Whether it is worthwhile to parse a head again that consists of `count` bytes, now that the last of them have
    /// arrived. A long head in small pieces would be parsed as often as there are pieces: the work would grow with the
    /// square of its length.
    func mayEndHead(_ count: Int, with last: UnsafeRawBufferPointer, longest: Int) -> Bool {
        count <= Self.shortHead || count >= 2 * incompleteHead || count >= longest || last.contains(ASCII.lineFeed)
    }
}
