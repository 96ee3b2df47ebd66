@preconcurrency import Dispatch
import CachePolicy
import EventIO
import Foundation
import HTTPModel
import Synchronization

#if DEBUG
/// Counts what its thread holds.
typealias Mutex = CountedMutex
#endif

/// The clock that downloads use.
package protocol DownloadClock: Sendable {
    /// Seconds since 1970.
    var now: Double { get }
    /// Seconds of a monotonic clock.
    var monotonic: Double { get }
    /// The time zone of schedules and caps.
    var local: LocalTime { get }
    /// Calls `wake` four times a second, until called again with `false`.
    func tick(_ isWanted: Bool, _ wake: @escaping @Sendable () -> Void)
}

/// The system's time, with a timer of its own.
package final class SystemDownloadClock: DownloadClock {
    private static let interval = DispatchTimeInterval.milliseconds(250)
    private let timer = Mutex<(any DispatchSourceTimer)?>(nil)

    package init() {}

    deinit { timer.withLock { $0?.cancel() } }

    package var now: Double { Date().timeIntervalSince1970 }

    package var local: LocalTime { .system }

    package var monotonic: Double { Double(MonotonicClock.nanoseconds()) / 1e9 }

    package func tick(_ isWanted: Bool, _ wake: @escaping @Sendable () -> Void) {
        timer.withLock { timer in
            timer?.cancel()
            timer = isWanted ? Self.timer(wake) : nil
        }
    }

    private static func timer(_ wake: @escaping @Sendable () -> Void) -> any DispatchSourceTimer {
        let timer = DispatchSource.makeTimerSource(queue: .global(qos: .utility))
        timer.setEventHandler(handler: wake)
        timer.schedule(deadline: .now() + interval, repeating: interval)
        timer.resume()
        return timer
    }
}
