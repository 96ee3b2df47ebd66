import ControlAPI
import Foundation
import HTTPModel

/// Opens a link of the dashboard in the browser without telling it to other users of this machine.
///
/// Everybody can read the arguments of a running program, and the link signs in whoever opens it first. So the browser
/// is given a file that only its owner can read, and which leads there.
package struct DashboardLaunch: Sendable {
    /// The file, which a later launch replaces. By then its link is worthless.
    package let path: String

    /// Writes the file.
    /// - Parameters:
    ///   - link: of the proxy's own: it is part of the text as it is.
    ///   - directory: only its owner may be able to change it.
    /// - Throws: `ControlError` if the file cannot be written.
    package init(_ link: String, in directory: String) throws {
        path = directory + "/reelcache-dashboard.html"
        let new = path + ".new"
        unlink(new)
        let descriptor = open(new, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw Self.failure(new) }
        defer { close(descriptor) }
        let text = Self.text(link)
        guard write(descriptor, text, text.utf8.count) == text.utf8.count, rename(new, path) == 0 else {
            let error = Self.failure(path)
            unlink(new)
            throw error
        }
    }

    private static func failure(_ path: String) -> ControlError {
        ControlError("cannot write \(path): \(String(errno: errno)); open the link of --print yourself")
    }

    private static func text(_ link: String) -> String {
        """
        <!DOCTYPE html>
        <meta charset="utf-8">
        <meta name="referrer" content="no-referrer">
        <meta http-equiv="refresh" content="0; url=\(link)">
        <title>Reelcache</title>
        <p><a href="\(link)">Open the dashboard</a></p>

        """
    }

    /// Where to put the file: a directory of the user's session if there is one, otherwise the cache directory.
    package static func directory(_ environment: [String: String], cacheDirectory: String) -> String {
        guard let directory = environment["XDG_RUNTIME_DIR"], directory.hasPrefix("/") else { return cacheDirectory }
        var info = stat()
        let isOwn = lstat(directory, &info) == 0 && info.st_mode & S_IFMT == S_IFDIR && info.st_uid == geteuid()
        return isOwn && info.st_mode & 0o077 == 0 ? directory : cacheDirectory
    }

    /// How long `xdg-open` may take, in seconds. Without a desktop, it lasts as long as the browser.
    private static let patience = 5.0

    /// Opens the file with the desktop's browser, and returns once that has been told.
    /// - Throws: `ControlError` if there is none.
    package func openInBrowser() throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["xdg-open", URL(fileURLWithPath: path).absoluteString]
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        let end = DispatchSemaphore(value: 0)
        process.terminationHandler = { _ in end.signal() }
        do { try process.run() } catch { throw Self.noBrowser }
        guard end.wait(timeout: .now() + Self.patience) == .success else { return }
        guard process.terminationStatus == 0 else { throw Self.noBrowser }
    }

    private static let noBrowser = ControlError(
        "xdg-open found no browser: open the link that reelcache dashboard --print prints")
}
