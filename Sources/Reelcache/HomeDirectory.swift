import Foundation

/// The user's home directory.
package enum HomeDirectory {
    /// An empty variable counts as unset, here and everywhere else: `HOME= reelcache` must not create `/.cache`.
    package static func path(_ environment: [String: String] = ProcessInfo.processInfo.environment) -> String {
        if let home = environment["HOME"], !home.isEmpty { return home }
        // From the system's user database. `NSHomeDirectory` reads the variable too.
        guard let user = getpwuid(getuid()), let home = user.pointee.pw_dir, home.pointee != 0 else {
            return NSHomeDirectory()
        }
        return String(cString: home)
    }

    /// The directory that a desktop variable such as `$XDG_CACHE_HOME` names, otherwise the default place below the
    /// home directory. (XDG base directory specification: a relative path in the variable counts as unset.)
    package static func directory(
        _ variable: String, orElse place: String, _ environment: [String: String] = ProcessInfo.processInfo.environment
    ) -> String {
        if let path = environment[variable], path.hasPrefix("/") { return path }
        return path(environment) + "/" + place
    }
}
