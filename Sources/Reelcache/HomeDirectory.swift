import Foundation

/// The user's.
package enum HomeDirectory {
    /// An empty variable counts as none, for this and for all others: `HOME= reelcache` must not make `/.cache`.
    package static func path(_ environment: [String: String] = ProcessInfo.processInfo.environment) -> String {
        if let home = environment["HOME"], !home.isEmpty { return home }
        // As the system's list of users has it. `NSHomeDirectory` asks the variable too.
        guard let user = getpwuid(getuid()), let home = user.pointee.pw_dir, home.pointee != 0 else {
            return NSHomeDirectory()
        }
        return String(cString: home)
    }

    /// A directory of the desktop, such as `$XDG_CACHE_HOME`, else its place below the home directory.
    /// (The XDG base directory specification: a relative path in the variable counts as none.)
    package static func directory(
        _ variable: String, orElse place: String, _ environment: [String: String] = ProcessInfo.processInfo.environment
    ) -> String {
        if let path = environment[variable], path.hasPrefix("/") { return path }
        return path(environment) + "/" + place
    }
}
