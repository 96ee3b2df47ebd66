import Glibc

// no traps: constants, and a limit that is held at 2^20 before it is converted.

/// The number of files that this process may have open.
enum OpenFileLimit {
    /// Raises the limit as far as the system permits.
    /// - Returns: the limit after that.
    static func raise() -> Int {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 1024 }
        limit.rlim_cur = limit.rlim_max
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        let most = Int(min(limit.rlim_cur, 1 << 20))
        growTable(to: min(most, leastTable))
        return most
    }

    /// When the table of descriptors is full, the kernel doubles it, and whoever opens the next one waits for that: a
    /// loop that accepts, 20 to 140 ms on a busy machine (`expand_files`). It never shrinks.
    private static func growTable(to count: Int) {
        let last = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, Int32(count - 1))
        if last >= 0 { close(last) }
    }

    /// 64 KiB of the kernel's memory.
    private static let leastTable = 8192
}
