import Administration
import CLinux
import ControlAPI
import Foundation
import HTTPModel

/// Signals as something to read, so that one thread waits for them and for everything else. They are blocked in all
/// threads that start later.
struct SignalReader {
    /// Readable when a signal has arrived.
    let descriptor: Int32

    /// Create it before anything that starts threads.
    /// - Throws: `ControlError` if the process has no descriptor left.
    init(_ numbers: [Int32]) throws {
        var set = sigset_t()
        sigemptyset(&set)
        for number in numbers { sigaddset(&set, number) }
        pthread_sigmask(SIG_BLOCK, &set, nil)
        descriptor = reel_signals(&set)
        guard descriptor >= 0 else { throw ControlError("signals cannot be read: \(String(errno: errno))") }
    }

    /// The next signal that has arrived; nil if there is none.
    func next() -> Int32? {
        let number = reel_next_signal(descriptor)
        return number > 0 ? number : nil
    }
}
