import CEvent

/// Reports when a socket can be read or written. Loop-bound; does not own the descriptor.
package final class SocketWatcher {
    package enum Interest { case read, write }

    /// Made when it is armed for the first time: most sockets are never full.
    private var event: OpaquePointer?
    private let (socket, interest): (Int32, Interest)
    /// Its base must outlive the event.
    private let loop: EventLoop
    private let handler: () -> Void
    private var isArmed = false

    /// - Parameters:
    ///   - interest: the event to wait for. Level-triggered, until `disarm`.
    ///   - handler: called on the loop, as long as the socket is ready.
    package init(_ fd: Int32, _ interest: Interest, on loop: EventLoop, handler: @escaping () -> Void) {
        self.handler = loop.counted(handler)
        (self.loop, socket, self.interest) = (loop, fd, interest)
    }

    deinit { if let event { event_free(event) } }

    private func makeEvent() -> OpaquePointer? {
        let what = (interest == .read ? EV_READ : EV_WRITE) | EV_PERSIST
        return event_new(
            loop.base, socket, Int16(what),
            { _, _, context in
                let watcher = Unmanaged<SocketWatcher>.fromOpaque(context!).takeUnretainedValue()
                withExtendedLifetime(watcher) { watcher.handler() }
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    package func arm() {
        guard !isArmed else { return }
        isArmed = true
        event = event ?? makeEvent()
        event_add(event, nil)
    }

    package func disarm() {
        guard isArmed else { return }
        isArmed = false
        event_del(event)
    }
}
