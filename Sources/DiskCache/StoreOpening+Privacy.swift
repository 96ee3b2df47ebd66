import Glibc
import Logging

/// Keeps the cache's files private to their owner: URLs in them may contain secrets.
extension StoreOpening {
    /// Files beside `data`; those below it are created with the right mode.
    private static let names: Set<String> = [
        "LOCK", "unfinished", "unfinished.new", "index.sqlite.damaged", "pinned.sqlite.damaged",
        "downloads.sqlite.damaged", "feeds.sqlite.damaged", "aliases.json", "aliases.json.new", "history",
        "history.damaged", "reserve",
    ]
    /// Tokens keep their mode: once others could read a token, it is no longer secret, and the proxy refuses to start
    /// with it.
    private static let tokens: Set<String> = ["control-token", "control-token-read"]
    private static let databases = [
        "index.sqlite", "index.damaged.sqlite", "pinned.sqlite", "downloads.sqlite", "feeds.sqlite",
    ]

    /// Corrects the modes of an existing directory and of the cache's files in it. If the directory has other files
    /// too, its own mode is kept: others may need them.
    static func makePrivate(in directory: String, _ logger: Logger) {
        let entries = FileSystem.entries(directory)
        let own = entries.filter { name in names.contains(name) || databases.contains { name.hasPrefix($0) } }
        let known = own.count + entries.count(where: tokens.contains) + (entries.contains("data") ? 1 : 0)
        for name in own { makePrivate("\(directory)/\(name)", mode: 0o600) }
        if entries.contains("data") { makePrivate("\(directory)/data", mode: 0o700) }
        if known == entries.count {
            makePrivate(directory, mode: 0o700)
        } else if isOpen(directory) {
            logger.notice(
                "\(directory) also holds other files, so other users may still list it; the cache's own files are private"
            )
        }
    }

    /// Changes nothing that belongs to another user, or is neither a plain file nor a directory.
    private static func makePrivate(_ path: String, mode: mode_t) {
        var info = stat()
        guard lstat(path, &info) == 0, info.st_uid == geteuid(), [S_IFREG, S_IFDIR].contains(info.st_mode & S_IFMT)
        else { return }
        if info.st_mode & 0o7777 != mode { chmod(path, mode) }
    }

    private static func isOpen(_ path: String) -> Bool {
        var info = stat()
        return stat(path, &info) == 0 && info.st_mode & 0o077 != 0
    }
}
