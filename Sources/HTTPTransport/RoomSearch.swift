import HTTPModel

/// When to look for connections that can be closed for new ones. A value; times are monotonic, in nanoseconds.
///
/// A look costs as much as there are connections. Where none is idle, a flood of new connections must not cost a look
/// each: after one that found nothing, there is a pause.
struct RoomSearch {
    static let pause: UInt64 = 100_000_000

    private var due: UInt64 = 0

    func isDue(_ now: UInt64) -> Bool { now >= due }

    mutating func foundNothing(_ now: UInt64) { due = now +| Self.pause }

    mutating func foundSome() { due = 0 }
}
