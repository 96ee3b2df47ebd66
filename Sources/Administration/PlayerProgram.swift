import ControlAPI
import Foundation

/// The program that plays a URL.
package struct PlayerProgram: Equatable, Sendable {
    /// The path of the program.
    package let path: String
    /// The arguments before the URL.
    package let arguments: [String]

    /// The players to try if none is named, in this order.
    package static let known = ["mpv", "vlc", "ffplay"]

    /// Finds the program.
    /// - Parameters:
    ///   - words: a name or a path, and arguments; empty for the first known player that is installed.
    ///   - searchPath: directories, as in `PATH`.
    ///   - isProgram: whether a file can be run.
    /// - Throws: `ControlError` that tells what to install.
    package init(
        _ words: [String], searchPath: String?, isProgram: (String) -> Bool = PlayerProgram.isProgram
    ) throws(ControlError) {
        arguments = Array(words.dropFirst())
        for name in words.first.map({ [$0] }) ?? Self.known {
            guard let path = Self.candidates(name, searchPath).first(where: isProgram) else { continue }
            self.path = path
            return
        }
        throw ControlError(Self.missing(words.first))
    }

    private static let standardSearchPath = "/usr/local/bin:/usr/bin:/bin"

    private static func candidates(_ name: String, _ searchPath: String?) -> [String] {
        guard !name.contains("/") else { return [name] }
        return (searchPath ?? standardSearchPath).split(separator: ":").filter { $0.hasPrefix("/") }.map {
            "\($0)/\(name)"
        }
    }

    private static func missing(_ name: String?) -> String {
        guard let name else {
            return
                "no player is installed: install mpv (sudo apt install mpv), VLC or ffplay, or name another with --player"
        }
        return name.contains("/")
            ? "the player \(name) is not a program: name another with --player"
            : "the player \(name) is not installed: install it, or name another with --player"
    }

    /// Whether a file can be run by this process.
    package static func isProgram(_ path: String) -> Bool {
        var info = stat()
        return stat(path, &info) == 0 && info.st_mode & S_IFMT == S_IFREG && access(path, X_OK) == 0
    }

    /// The environment for a player of a URL at `host`. It bypasses the network's HTTP proxy, which could not reach
    /// the one on this machine.
    ///
    /// VLC 3 uses `http_proxy` regardless of `no_proxy`, so that variable is removed.
    package static func environment(_ environment: [String: String], host: String) -> [String: String] {
        var environment = environment
        environment["http_proxy"] = nil
        for name in ["no_proxy", "NO_PROXY"] {
            let others = environment[name].flatMap { $0.isEmpty ? nil : $0 }
            environment[name] = [others, host].compactMap { $0 }.joined(separator: ",")
        }
        return environment
    }
}
