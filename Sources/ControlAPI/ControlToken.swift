import Foundation
import HTTPModel

/// The secret that permits changing the cache over HTTP: 32 random bytes in a file that only its owner can read, so
/// that neither other users of the machine nor pages in a browser can.
package struct ControlToken: Sendable {
    /// The token's file.
    package let path: String
    /// The name of that file.
    package let name: String
    /// 64 hexadecimal digits.
    package let text: String

    private static let byteCount = 32

    /// What a token permits.
    package enum Scope: String, Sendable {
        /// Reading and changing.
        case all = "control-token"
        /// Reading, and no secrets of URLs.
        case reading = "control-token-read"
    }

    /// Reads the token of a cache directory, creating it if it does not exist. The caller must hold the directory's
    /// lock.
    /// - Throws: `TokenError`: a file that others can read (correcting its mode would not help, as they may have
    ///   read it), or that does not contain a token.
    package init(makingIn directory: String, for scope: Scope = .all) throws(TokenError) {
        let path = Self.path(in: directory, scope)
        if try Self.mode(of: path) == nil {
            try Self.make(path)
            if let mode = try Self.mode(of: path), mode & 0o077 != 0 {
                unlink(path)
                throw TokenError(
                    "\(directory): its file system has no modes, so others could read it: mount that with umask=077"
                )
            }
        }
        try self.init(of: directory, for: scope)
    }

    /// Reads the token of a cache directory.
    package init(of directory: String, for scope: Scope = .all) throws(TokenError) {
        (path, name) = (Self.path(in: directory, scope), scope.rawValue)
        guard let mode = try Self.mode(of: path) else {
            throw TokenError("there is no \(path): the proxy creates it when it starts", isMendedAtStart: true)
        }
        guard mode & 0o077 == 0 else {
            throw TokenError(
                "others may have read \(path) (its mode is \(String(mode & 0o777, radix: 8))): remove it, and the proxy creates a new one when it starts",
                isMendedAtStart: true)
        }
        guard let data = FileManager.default.contents(atPath: path) else { throw TokenError.system("read", path) }
        text = String(decoding: data, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
        guard text.utf8.count == 2 * Self.byteCount, text.utf8.allSatisfy({ ASCII.hexValue($0) != nil }) else {
            throw TokenError(
                "\(path) does not contain a token: remove it, and the proxy creates a new one when it starts",
                isMendedAtStart: true
            )
        }
    }

    private static func path(in directory: String, _ scope: Scope) -> String { directory + "/" + scope.rawValue }

    /// - Returns: nil if there is no such file.
    private static func mode(of path: String) throws(TokenError) -> mode_t? {
        var info = stat()
        guard lstat(path, &info) == 0 else {
            if errno == ENOENT { return nil }
            throw .system("look at", path)
        }
        guard info.st_mode & S_IFMT == S_IFREG else {
            throw TokenError(
                "\(path) is not a file: remove it, and the proxy creates one when it starts", isMendedAtStart: true)
        }
        return info.st_mode
    }

    /// Writes it under another name first, so that a token exists as a whole or not at all.
    private static func make(_ path: String) throws(TokenError) {
        let new = path + ".new"
        unlink(new)
        let descriptor = open(new, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw .system("create", new) }
        defer { close(descriptor) }
        var generator = SystemRandomNumberGenerator()
        let line = RandomSecret.make(byteCount: byteCount, using: &generator) + "\n"
        guard write(descriptor, line, line.utf8.count) == line.utf8.count, fsync(descriptor) == 0,
            rename(new, path) == 0
        else {
            let error = TokenError.system("write", path)
            unlink(new)
            throw error
        }
    }

    /// Whether `Authorization` contains the token (RFC 6750 §2.1). Takes the same time wherever a wrong token
    /// differs.
    package func isShown(by authorization: String?) -> Bool {
        guard let authorization else { return false }
        let parts = authorization.split(separator: " ", maxSplits: 1)
        guard parts.count == 2, ASCII.equalIgnoringCase(parts[0], "bearer") else { return false }
        return isShown(as: parts[1])
    }

    /// Whether a text is the token.
    package func isShown(as text: some StringProtocol) -> Bool { RandomSecret.areEqual(text, self.text) }
}

/// A token that cannot be used. The description is one line that tells what to do.
package struct TokenError: Error, Sendable, CustomStringConvertible {
    package let description: String
    /// Whether a starting proxy creates a usable token; a running one does not.
    package let isMendedAtStart: Bool

    init(_ description: String, isMendedAtStart: Bool = false) {
        self.description = description
        self.isMendedAtStart = isMendedAtStart
    }

    static func system(_ operation: String, _ path: String) -> TokenError {
        TokenError("cannot \(operation) \(path): \(String(errno: errno))")
    }
}
