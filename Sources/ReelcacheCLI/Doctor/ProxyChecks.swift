/// The state of the address at which the proxy is to listen.
enum PortFacts: Sendable, Equatable {
    case free
    /// The system chooses a port.
    case any
    /// The proxy of this cache listens there.
    case ours
    /// A proxy of another cache listens there.
    case otherProxy(version: String)
    /// Another program listens there; with its name and process ID, if they can be determined.
    case taken(by: String?)
    /// With the system's error message.
    case refused(String)

    func finding(_ address: String) -> Finding {
        let elsewhere = "choose another address with listen"
        return switch self {
        case .free: .ok("port", "\(address) is free")
        case .any: .ok("port", "the system chooses a free one")
        case .ours: .ok("port", "the proxy listens at \(address)")
        case .otherProxy(let version):
            .problem(
                "port", "a proxy of another cache has \(address) (version \(version))",
                "stop it, \(elsewhere), or name its cache with --cache-dir")
        case .taken(let program):
            .problem("port", "\(program ?? "another program") has \(address)", "stop it, or \(elsewhere)")
        case .refused(let reason): .problem("port", "cannot listen at \(address): \(reason)", elsewhere)
        }
    }
}

/// The proxy that owns the cache.
enum RunningFacts: Sendable, Equatable {
    case none
    /// A process that runs no proxy has the cache open.
    case owned(pid: Int32?)
    case silent(pid: Int32, url: String, reason: String)
    /// - Parameters:
    ///   - directory: the directory that it reports to serve; nil if it does not report it.
    ///   - isWhereWanted: whether it listens at the configured address.
    case answers(pid: Int32, url: String, version: String, directory: String?, isWhereWanted: Bool)

    /// - Parameters:
    ///   - version: the version of this program.
    ///   - directory: the cache directory.
    func findings(version: String, directory: String) -> [Finding] {
        let restart = "restart it (systemctl --user restart reelcache, or stop process"
        switch self {
        case .none: return [.ok("proxy", "none is running; start one with reelcache serve or reelcache play")]
        case .owned(let pid):
            return [
                .warning(
                    "proxy", "\(pid.map { "process \($0)" } ?? "another process") has the cache open but runs no proxy",
                    "wait until it has ended")
            ]
        case .silent(let pid, let url, let reason):
            return [
                .problem(
                    "proxy", "process \(pid) at \(url) does not answer: \(reason)",
                    "see its log, then \(restart) \(pid))")
            ]
        case .answers(let pid, let url, let running, let served, let isWhereWanted):
            var findings: [Finding] = []
            if running != version {
                findings.append(
                    .warning("proxy", "version \(running) is running, but this is \(version)", "\(restart) \(pid))"))
            }
            if let served, served != directory {
                findings.append(
                    .warning("proxy", "it serves \(served) instead of \(directory)", "name that with --cache-dir"))
            }
            if !isWhereWanted {
                findings.append(
                    .warning(
                        "proxy", "it listens at \(url), not where the configuration says", "\(restart) \(pid))"))
            }
            return findings.isEmpty ? [.ok("proxy", "version \(running) answers at \(url)")] : findings
        }
    }
}
