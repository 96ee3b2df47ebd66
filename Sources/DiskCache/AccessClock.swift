import Glibc

/// Wall-clock time in microseconds. It orders last reads, across restarts.
enum AccessClock {
    static func now() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME_COARSE, &time)
        return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
    }

    /// Subtracted from the last read of whatever is to be evicted first: 31 years, so that it sorts before everything
    /// else. The order among such extents is kept.
    static let demotion: Int64 = 1_000_000_000_000_000
}
