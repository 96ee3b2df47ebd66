import Glibc

/// The system's limit on the size of files of this process (`ulimit -f`, `LimitFSIZE=`).
enum FileSizeLimit {
    /// Makes a write beyond the limit fail with EFBIG rather than end the process with SIGXFSZ, unless the program
    /// handles that signal.
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
