import Glibc

/// Wall-clock time in microseconds: the order of last reads, across restarts.
enum AccessClock {
    static func now() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME_COARSE, &time)
        return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
    }

    /// What is taken off the time of what is to go before all that was read at any time: 31 years. The order among what
    /// it is taken off stays.
    static let demotion: Int64 = 1_000_000_000_000_000
}
