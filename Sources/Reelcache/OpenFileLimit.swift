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
        return Int(min(limit.rlim_cur, 1 << 20))
    }
}
