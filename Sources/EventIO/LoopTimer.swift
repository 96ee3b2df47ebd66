import CEvent
import Glibc

/// Calls back once, after a delay. Loop-bound; scheduling it again replaces the earlier time.
package final class LoopTimer {
    private var event: OpaquePointer!
    /// Its base must outlive the event.
    private let loop: EventLoop
    private let handler: () -> Void

    package init(on loop: EventLoop, handler: @escaping () -> Void) {
        self.handler = handler
        self.loop = loop
        guard loop.driver == nil else { return }
        event = event_new(
            loop.base, -1, 0,
            { _, _, context in
                let timer = Unmanaged<LoopTimer>.fromOpaque(context!).takeUnretainedValue()
                withExtendedLifetime(timer) { timer.handler() }
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    deinit { if let driver = loop.driver { driver.cancel(ObjectIdentifier(self)) } else { event_free(event) } }

    package func schedule(afterSeconds seconds: Double) {
        if let driver = loop.driver {
            return driver.schedule(ObjectIdentifier(self), on: loop, afterSeconds: seconds) { [weak self] in
                self?.handler()
            }
        }
        var time = timeval(tv_sec: Int(seconds), tv_usec: Int((seconds - seconds.rounded(.down)) * 1e6))
        event_add(event, &time)
    }

    package func cancel() {
        if let driver = loop.driver { driver.cancel(ObjectIdentifier(self)) } else { event_del(event) }
    }
}
