import CEvent
import CLinux
import Glibc
import Synchronization

/// One thread and one libevent `event_base`: all work on sockets of this loop runs here.
///
/// *Loop-bound* objects (connections, transfers, watchers, timers) are plain classes that are not `Sendable`, so
/// the compiler keeps them on the thread that created them. Other threads reach them through `post`.
///
/// `@unchecked Sendable` because other threads only write to an eventfd and free events (libevent locks its base),
/// state that is local to the loop is used only on its thread (checked by `assertOnLoop`), and the inbox is inside
/// a `Mutex`.
@usableFromInline
package final class EventLoop: @unchecked Sendable {
    package let index: Int
    let base: OpaquePointer
    private let inbox = Mutex(Inbox())
    /// Work that the loop's own thread has yet to do, in order.
    private var pending: [() -> Void] = []
    /// Runs pending work: activated by `bell`, or directly by work on the loop's own thread.
    private var wake: OpaquePointer!
    /// An eventfd with which other threads wake the loop. libevent's own mechanism writes to one while it holds the
    /// base's lock, for which the woken thread would then have to wait.
    private let bell: Int32
    private var thread: pthread_t?
    /// How many events of sockets were handled, in a simulation.
    private var socketEvents = 0
    /// Takes the place of the thread and of time; nil but in a simulation.
    let driver: (any LoopDriver)?

    private struct Inbox {
        var work: [@Sendable () -> Void] = []
        var isWoken = false
        var isStopped = false
    }

    /// How many pieces of work run before sockets get their turn.
    private static let mostAtOnce = 8

    private static let threadsEnabled: Bool = evthread_use_pthreads() == 0

    /// - Parameters:
    ///   - index: the loop's index in its group, also used in the name of its thread.
    ///   - driver: what runs the loop instead of a thread, in a simulation.
    /// - Throws: `EventLoopError` if libevent cannot create an event base.
    package init(index: Int = 0, driver: (any LoopDriver)? = nil) throws(EventLoopError) {
        guard Self.threadsEnabled, let configuration = event_config_new() else {
            throw EventLoopError(operation: "event_config_new", code: errno)
        }
        defer { event_config_free(configuration) }
        // Without this, work that posts more work would be served in one pass, and sockets would wait until none is
        // left.
        event_config_set_max_dispatch_interval(configuration, nil, 16, 0)
        // Demands epoll, whatever the environment sets (EVENT_NOEPOLL): with other methods, an eventfd that is
        // never read would keep the loop busy.
        event_config_require_features(configuration, Int32(EV_FEATURE_ET.rawValue))
        guard let base = event_base_new_with_config(configuration) else {
            throw EventLoopError(operation: "event_base_new", code: errno)
        }
        bell = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
        guard bell >= 0 else {
            let code = errno
            event_base_free(base)
            throw EventLoopError(operation: "eventfd", code: code)
        }
        self.index = index
        self.base = base
        self.driver = driver
        // Edge-triggered: a write wakes the loop even if earlier writes were never read.
        wake = event_new(
            base, bell, Int16(EV_READ | EV_PERSIST | EV_ET),
            { _, _, context in
                Unmanaged<EventLoop>.fromOpaque(context!).takeUnretainedValue().runPending()
            }, Unmanaged.passUnretained(self).toOpaque())
        guard wake != nil, event_add(wake, nil) == 0 else { throw EventLoopError(operation: "event_add", code: errno) }
    }

    deinit {
        if wake != nil { event_free(wake) }
        event_base_free(base)
        close(bell)
    }

    /// Starts the loop's thread, which keeps the loop alive until `stop`.
    package func start() throws(EventLoopError) {
        guard driver == nil else { return }
        let context = Unmanaged.passRetained(self).toOpaque()
        var id = pthread_t()
        let status = pthread_create(
            &id, nil,
            { context in
                let loop = Unmanaged<EventLoop>.fromOpaque(context!).takeUnretainedValue()
                EventLoop.setCurrent(loop)
                reel_name_thread("loop-\(loop.index)")
                reel_block_broken_pipes()
                event_base_loop(loop.base, EVLOOP_NO_EXIT_ON_EMPTY)
                EventLoop.setCurrent(nil)
                return nil
            }, context)
        guard status == 0 else {
            Unmanaged.passUnretained(self).release()
            throw EventLoopError(operation: "pthread_create", code: status)
        }
        thread = id
    }

    /// Ends the loop and joins its thread. Work that was posted before still runs. Must not be called on the loop
    /// itself.
    package func stop() {
        guard let thread else { return }
        post {
            self.inbox.withLock { $0.isStopped = true }
            event_base_loopbreak(self.base)
        }
        pthread_join(thread, nil)
        (self.thread, pending) = (nil, [])
        Unmanaged.passUnretained(self).release()
    }

    /// Runs `work` on the loop soon, in the order of the calls. From any thread. Work that is posted after `stop`
    /// does not run.
    @usableFromInline package func post(_ work: @escaping @Sendable () -> Void) {
        if let driver { return driver.post(work, to: self) }
        let mustWake = inbox.withLock { inbox in
            guard !inbox.isStopped else { return false }
            inbox.work.append(work)
            defer { inbox.isWoken = true }
            return !inbox.isWoken
        }
        guard mustWake else { return }
        guard isCurrent else { return ring() }
        // If work is pending, the loop is woken for it.
        if pending.isEmpty { event_active(wake, 0, 0) }
    }

    /// Runs `work` after the current callback has returned. On the loop only.
    package func afterCallback(_ work: @escaping () -> Void) {
        assertOnLoop()
        if pending.isEmpty {
            if let driver { driver.post({ self.runPending(.max) }, to: self) } else { event_active(wake, 0, 0) }
        }
        pending.append(work)
    }

    /// Runs `work` on the loop and waits for its result. From another thread only.
    package func sync<Result: Sendable>(_ work: @escaping @Sendable () -> Result) -> Result {
        precondition(!isCurrent, "sync on the loop itself would wait forever")
        if driver != nil { return drive(work) }
        let box = SyncBox<Result>()
        post { box.put(work()) }
        return box.take()
    }

    @usableFromInline package var isCurrent: Bool { EventLoop.current === self }

    package func assertOnLoop() {
        assert(isCurrent, "called off the loop")
    }

    private func runPending(_ most: Int = mostAtOnce) {
        let posted = inbox.withLock { inbox in
            inbox.isWoken = false
            return exchange(&inbox.work, with: [])
        }
        if pending.isEmpty, posted.count <= most {
            for work in posted { work() }
            return
        }
        for work in posted { pending.append(work) }
        let isRestLeft = pending.count > most
        let turn = isRestLeft ? Array(pending.prefix(most)) : exchange(&pending, with: [])
        if isRestLeft { pending.removeFirst(most) }
        for work in turn { work() }
        // By the bell: an active event would be handled before sockets are looked at.
        if isRestLeft { ring() }
    }

    private func ring() { eventfd_write(bell, 1) }

    // MARK: In a simulation

    /// Runs `work` as the loop's thread would. For its driver.
    package func drive<Result>(_ work: () -> Result) -> Result {
        let former = EventLoop.current
        EventLoop.setCurrent(self)
        defer { EventLoop.setCurrent(former) }
        return work()
    }

    /// A handler of a socket's events, which counts them in a simulation.
    func counted(_ handler: @escaping () -> Void) -> () -> Void {
        driver == nil ? handler : { [unowned self] in (socketEvents &+= 1, handler()).1 }
    }

    /// Handles the events of sockets that are ready now, without waiting. For its driver.
    /// - Returns: whether there were any.
    package func poll() -> Bool {
        let before = socketEvents
        drive { _ = event_base_loop(base, EVLOOP_NONBLOCK) }
        return socketEvents != before
    }

    // MARK: The loop of this thread

    private static let currentKey: pthread_key_t = {
        var key = pthread_key_t()
        pthread_key_create(&key, nil)
        return key
    }()

    private static func setCurrent(_ loop: EventLoop?) {
        pthread_setspecific(currentKey, loop.map { UnsafeRawPointer(Unmanaged.passUnretained($0).toOpaque()) })
    }

    /// The loop of the current thread, if there is one.
    package static var current: EventLoop? {
        pthread_getspecific(currentKey).map { Unmanaged<EventLoop>.fromOpaque($0).takeUnretainedValue() }
    }
}

/// libevent failed to create something.
package struct EventLoopError: Error, CustomStringConvertible {
    package let operation: String
    package let code: Int32
    package var description: String { "\(operation): \(String(cString: strerror(code)))" }
}

func exchange<Value>(_ value: inout Value, with new: Value) -> Value {
    defer { value = new }
    return value
}

/// One value handed from the loop to a thread that waits for it. `@unchecked Sendable` because the semaphore orders
/// the write before the read.
private final class SyncBox<Value>: @unchecked Sendable {
    private var value: Value?
    private var semaphore = sem_t()
    init() { sem_init(&semaphore, 0, 0) }
    deinit { sem_destroy(&semaphore) }
    func put(_ value: Value) {
        self.value = value
        sem_post(&semaphore)
    }
    func take() -> Value {
        while sem_wait(&semaphore) != 0 {}
        return value!
    }
}
