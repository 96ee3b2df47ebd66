import Glibc

/// How long the system lets a file of this process become (`ulimit -f`, `LimitFSIZE=`).
enum FileSizeLimit {
    /// Writing beyond it fails with EFBIG instead of ending the process by SIGXFSZ, unless the program has a handler of
    /// its own for that.
    static func becomeAnError() {
        var action = sigaction()
        guard sigaction(SIGXFSZ, nil, &action) == 0, action.__sigaction_handler.sa_handler == nil else { return }
        signal(SIGXFSZ, SIG_IGN)
    }

    /// In bytes.
    static var current: Int64 {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0 else { return .max }
        return Int64(clamping: limit.rlim_cur)
    }
}
