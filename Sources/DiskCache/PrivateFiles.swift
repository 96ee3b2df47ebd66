import Glibc
import Logging

/// The cache's files are their owner's alone: URLs in them may hold what opens what they name.
enum PrivateFiles {
    /// Beside `data`, whose files are made with the right mode.
    private static let names: Set<String> = [
        "LOCK", "unfinished", "unfinished.new", "index.sqlite.damaged", "pinned.sqlite.damaged",
        "downloads.sqlite.damaged",
    ]
    /// Theirs are left as they are: what others may have read is no secret any more, and the proxy that finds it so
    /// does not start.
    private static let tokens: Set<String> = ["control-token", "control-token-read"]
    private static let databases = ["index.sqlite", "index.damaged.sqlite", "pinned.sqlite", "downloads.sqlite"]

    /// Corrects the modes of a directory that was there before, and of what the cache has in it. Where somebody keeps
    /// other things there, the directory is left as it is: others may need to get at them.
    static func correct(in directory: String, _ logger: Logger) {
        let entries = FileSystem.entries(directory)
        let own = entries.filter { name in names.contains(name) || databases.contains { name.hasPrefix($0) } }
        let known = own.count + entries.count(where: tokens.contains) + (entries.contains("data") ? 1 : 0)
        for name in own { makePrivate("\(directory)/\(name)", mode: 0o600) }
        if entries.contains("data") { makePrivate("\(directory)/data", mode: 0o700) }
        if known == entries.count {
            makePrivate(directory, mode: 0o700)
        } else if isOpen(directory) {
            logger.notice(
                "\(directory) holds other files too, so that others may go on reading its names; the cache's own files are private"
            )
        }
    }

    /// Of what belongs to another user nothing is changed, nor of what is no plain file or directory.
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
