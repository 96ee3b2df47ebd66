import Glibc
import Synchronization

/// Clocks in microseconds.
enum AccessClock {
    /// Wall-clock time. It orders last reads, across restarts: those within one tick of the coarse clock, too.
    static func now() -> Int64 {
        if isSimulated.load(ordering: .relaxed), let driver { return driver.microseconds() }
        return time(of: CLOCK_REALTIME)
    }

    /// For what lasts a while: unlike the wall clock, it is never set back.
    static func monotonic() -> Int64 {
        if isSimulated.load(ordering: .relaxed), let driver { return driver.monotonicMicroseconds() }
        return time(of: CLOCK_MONOTONIC_COARSE)
    }

    private static func time(of clock: clockid_t) -> Int64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
    }

    /// Subtracted from the last read of whatever is to be evicted first: 31 years, so that it sorts before everything
    /// else. The order among such extents is kept.
    static let demotion: Int64 = 1_000_000_000_000_000

    // MARK: In a simulation

    /// Whether any thread of this process simulates.
    private static let isSimulated = Atomic(false)
    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        pthread_key_create(&key, nil)
        return key
    }()

    /// What owns the time of this thread; nil for the system's. The caller keeps it.
    static var driver: (any StoreDriver)? {
        get {
            pthread_getspecific(key).map { Unmanaged<AnyObject>.fromOpaque($0).takeUnretainedValue() }
                as? any StoreDriver
        }
        set {
            pthread_setspecific(
                key, newValue.map { UnsafeRawPointer(Unmanaged.passUnretained($0 as AnyObject).toOpaque()) })
            if newValue != nil { isSimulated.store(true, ordering: .relaxed) }
        }
    }
}
