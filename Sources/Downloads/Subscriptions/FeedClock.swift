@preconcurrency import Dispatch
import Foundation
import Synchronization

/// The clock that subscriptions use.
package protocol FeedClock: Sendable {
    /// Seconds since 1970.
    var now: Double { get }
    /// Calls `wake` once, after this many seconds or earlier; replaces an earlier call. nil for never.
    func wake(after seconds: Double?, _ wake: @escaping @Sendable () -> Void)
}

/// The system's time.
package final class SystemFeedClock: FeedClock {
    /// Seconds. The timer does not count the time that the machine sleeps, so that a later wake may come much too late.
    private static let longestWait = 60.0

    private let timer = Mutex<(any DispatchSourceTimer)?>(nil)

    package init() {}

    deinit { timer.withLock { $0?.cancel() } }

    package var now: Double { Date().timeIntervalSince1970 }

    package func wake(after seconds: Double?, _ wake: @escaping @Sendable () -> Void) {
        timer.withLock { timer in
            timer?.cancel()
            timer = seconds.map { Self.timer($0, wake) }
        }
    }

    private static func timer(_ seconds: Double, _ wake: @escaping @Sendable () -> Void) -> any DispatchSourceTimer {
        let timer = DispatchSource.makeTimerSource(queue: .global(qos: .utility))
        timer.setEventHandler(handler: wake)
        timer.schedule(deadline: .now() + min(max(0, seconds), longestWait), leeway: .milliseconds(500))
        timer.resume()
        return timer
    }
}
