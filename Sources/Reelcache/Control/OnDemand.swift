import ControlAPI
@preconcurrency import Dispatch
import Synchronization

/// A part of a cache that is opened when it is needed first. Safe to use from any thread.
final class OnDemand<Value: Sendable>: Sendable {
    private let opened: Mutex<Value?>
    private let open: @Sendable () throws -> Value
    private let isClosed = Atomic(false)
    private let queue = DispatchQueue(label: "reelcache.opening")

    /// - Parameter open: called where the part is needed; again, if it threw.
    init(_ open: @escaping @Sendable () throws -> Value) {
        opened = Mutex(nil)
        self.open = open
    }

    /// What is open already.
    init(_ value: Value) {
        opened = Mutex(value)
        open = { value }
    }

    private var ifOpen: Value? { opened.withLock { $0 } }

    /// Opens it, unless it is open: may block then, so not on a loop.
    func value() throws -> Value {
        if let value = ifOpen { return value }
        return try queue.sync {
            if let value = ifOpen { return value }
            guard !isClosed.load(ordering: .relaxed) else {
                throw ControlError(503, "the cache is being closed: try again")
            }
            let value = try open()
            opened.withLock { $0 = value }
            return value
        }
    }

    /// Opens nothing any more.
    /// - Returns: what is open.
    func close() -> Value? {
        queue.sync {
            isClosed.store(true, ordering: .relaxed)
            return ifOpen
        }
    }
}
