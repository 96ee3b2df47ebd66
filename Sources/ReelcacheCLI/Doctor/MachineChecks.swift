import HTTPModel

/// The number of files that this process may have open.
struct FileLimitFacts: Sendable, Equatable {
    /// The highest limit that this process can set.
    var most: Int
    /// The lowest limit with which a proxy can work.
    var needed: Int

    /// Limits from here on have no noticeable effect.
    private static let plenty = 4096

    var finding: Finding {
        let advice = "raise the limit: ulimit -n, or LimitNOFILE= in the unit"
        if most < needed {
            return .problem("open files", "at most \(most), and the proxy needs \(needed)", advice)
        }
        if most < Self.plenty {
            return .warning("open files", "at most \(most): enough for few players at once", advice)
        }
        return .ok("open files", "at most \(most)")
    }
}

/// Times in seconds since 1970.
struct ClockFacts: Sendable, Equatable {
    var now: Int64
    /// When this program was built or installed.
    var built: Int64
    /// The origin's `Date`, when it was contacted.
    var origin: Int64?

    private static let tolerance: Int64 = 300

    var finding: Finding {
        let advice = "set the clock (timedatectl set-ntp true)"
        // A file may come from a machine whose clock is a little ahead.
        if now < built -| 86_400 {
            return .problem(
                "clock", "it shows \(HTTPDate.format(now)), before the program was built: no certificate is valid then",
                advice)
        }
        guard let origin else { return .ok("clock", HTTPDate.format(now)) }
        let difference = origin -| now
        guard difference.magnitude > Self.tolerance.magnitude else { return .ok("clock", "agrees with the origin's") }
        let distance = TimeSpan(seconds: Int64(clamping: difference.magnitude))
        return .warning(
            "clock",
            "it is \(distance) \(difference > 0 ? "behind" : "ahead of") the origin's: freshness is misjudged",
            advice)
    }
}

/// How host names are looked up.
struct NameFacts: Sendable, Equatable {
    /// The number of `nameserver` lines in /etc/resolv.conf; nil if it cannot be read.
    var servers: Int?
    /// Whether `localhost` resolves.
    var resolvesLocalhost: Bool

    var finding: Finding {
        guard resolvesLocalhost else {
            return .problem("names", "localhost does not resolve", "add 127.0.0.1 localhost to /etc/hosts")
        }
        guard let servers, servers > 0 else {
            return .warning(
                "names", "/etc/resolv.conf names no server: only names in /etc/hosts resolve",
                "connect to a network, or add nameserver ADDRESS to it")
        }
        return .ok("names", "\(servers) name server\(servers == 1 ? "" : "s")")
    }
}

/// The certificates by which https origins are verified.
struct CertificateFacts: Sendable, Equatable {
    /// `ca_file`, or the system's file; nil if none was found.
    var file: String?
    var isConfigured: Bool
    /// The number of certificates in it; nil if it cannot be read.
    var count: Int?

    var finding: Finding {
        guard let file else {
            return .problem(
                "certificates", "none found on this machine: no origin over https can be trusted",
                "install them (sudo apt install ca-certificates), or set ca_file")
        }
        let advice = isConfigured ? "set ca_file to a readable PEM file" : "reinstall ca-certificates"
        guard let count else { return .problem("certificates", "\(file) cannot be read", advice) }
        guard count > 0 else { return .problem("certificates", "\(file) has no certificate in PEM form", advice) }
        return .ok("certificates", "\(count) in \(file)")
    }
}

/// The programs that find the media behind pages.
struct ResolverFacts: Sendable, Equatable {
    /// The programs of the setting `resolvers`.
    var programs: [String]
    /// Those that this user cannot run.
    var missing: [String]

    /// Nil if there are no resolvers.
    var finding: Finding? {
        guard !programs.isEmpty else { return nil }
        guard missing.isEmpty else {
            return .warning(
                "resolvers", "cannot run \(missing.map(\.printable).joined(separator: ", ")): pages do not play",
                "install it, or name it by its path in resolvers; the proxy looks in the PATH that it was started with")
        }
        return .ok("resolvers", programs.map(\.printable).joined(separator: ", "))
    }
}

/// HTTP proxies of the network that players might use to reach the one on this machine.
struct ProxyVariableFacts: Sendable, Equatable {
    /// The names of the variables that are set.
    var variables: [String]
    /// The entries of `no_proxy` and `NO_PROXY`.
    var exceptions: [String]
    /// The host by which players reach the proxy.
    var host: String

    var finding: Finding {
        guard let name = variables.first else { return .ok("environment", "no other proxy is in the way") }
        if exceptions.contains("*") || exceptions.contains(host) {
            return .ok("environment", "\(name) is set, and no_proxy excepts \(host)")
        }
        return .warning(
            "environment", "\(name) is set: players may send requests for \(host) to that proxy",
            "add \(host) to no_proxy")
    }

    /// - Parameter environment: the environment of this process.
    init(_ environment: [String: String], host: String) {
        let names = ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"]
        variables = names.filter { environment[$0]?.isEmpty == false }
        exceptions = ["no_proxy", "NO_PROXY"].flatMap { (environment[$0] ?? "").split(separator: ",") }.map {
            String($0.trimmingPrefix(while: \.isWhitespace))
        }
        self.host = host
    }
}
