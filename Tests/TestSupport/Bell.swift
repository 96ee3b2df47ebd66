import Foundation

/// Wakes, once, all threads that wait in poll(2) for a socket and for this. A waiter holds the bell that was there when
/// it last looked; ringing puts a new one in its place.
final class Bell: Sendable {
    /// Readable from the ring on, for everybody: nobody takes the byte out.
    let descriptor: Int32
    private let clapper: Int32

    init() throws {
        let pipe = try Pipe.make()
        (descriptor, clapper) = (pipe.readEnd, pipe.writeEnd)
    }

    deinit {
        close(descriptor)
        close(clapper)
    }

    /// Writes a byte and does not close instead: a program started meanwhile may hold the pipe open.
    func ring() {
        _ = write(clapper, [1], 1)
    }
}

/// A pipe's two descriptors. Whoever made it closes them.
struct Pipe {
    let readEnd: Int32
    let writeEnd: Int32

    static func make() throws -> Pipe {
        var ends: [Int32] = [0, 0]
        try retryingInterrupts("pipe") { pipe(&ends) }
        ends.forEach(closeOnExec)
        return Pipe(readEnd: ends[0], writeEnd: ends[1])
    }
}
