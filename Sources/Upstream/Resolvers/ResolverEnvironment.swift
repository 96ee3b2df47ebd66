import Glibc

/// The environment of a resolver: what programs need to find their files and to write text, and nothing that the proxy
/// was given for itself, such as secrets. A variable of its own is part of its command: `[env, NAME=value, program]`.
package enum ResolverEnvironment {
    private static let names: Set<String> = [
        "PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "XDG_CACHE_HOME",
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME", "SSL_CERT_FILE", "SSL_CERT_DIR",
    ]

    private static let standardPath = "/usr/local/bin:/usr/bin:/bin"

    /// Environment proxies are left out, as they are for the proxy's own requests: they may lead back to this proxy,
    /// which would run the resolver again.
    static func variables(of environment: [String: String]) -> [String: String] {
        var variables = environment.filter { names.contains($0.key) }
        variables["PATH"] = variables["PATH"] ?? standardPath
        return variables
    }

    /// Where a program is: the path itself, or the first file of that name in the directories of `PATH` that may be run.
    /// Nil if there is none.
    static func find(_ program: String, in path: String) -> String? {
        guard !program.contains("/") else { return program }
        return path.split(separator: ":").lazy.map { "\($0)/\(program)" }.first { access($0, X_OK) == 0 }
    }

    /// Whether a resolver would find its program.
    /// - Parameter environment: of the process that runs it.
    package static func finds(_ program: String, in environment: [String: String]) -> Bool {
        find(program, in: variables(of: environment)["PATH"] ?? standardPath).map { access($0, X_OK) == 0 } ?? false
    }
}
