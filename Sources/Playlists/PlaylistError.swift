import HTTPModel

/// Why a text cannot be used as a playlist, in one line.
package struct PlaylistError: Error, Sendable, Equatable, CustomStringConvertible {
    package enum Kind: Sendable, Equatable {
        /// It does not begin as one does: an HTML page, a segment, nothing at all.
        case notAPlaylist
        /// Not UTF-8, nor another encoding in which ASCII is as it is.
        case encoding
        /// Beyond one of `PlaylistLimits`.
        case tooLarge
        /// The grammar is not kept.
        case malformed
        /// A variable that is not defined before its use; so are those in a circle.
        case undefinedVariable
        /// `EXT-X-DEFINE:IMPORT` of a variable that the multivariant playlist, if it is known, does not define.
        case missingImport
        /// An XML document with a document type: it could define entities.
        case documentType
    }

    package let kind: Kind
    /// What is wrong.
    package let reason: String
    /// Counted from 1; nil where it is about no line.
    package let line: Int?

    package init(_ kind: Kind, _ reason: String, line: Int? = nil) {
        self.kind = kind
        self.reason = reason
        self.line = line
    }

    package var description: String { (line.map { "line \($0): \(reason)" } ?? reason).printable }

    static func malformed(_ reason: String, line: Int? = nil) -> PlaylistError {
        PlaylistError(.malformed, reason, line: line)
    }

    static func tooLarge(_ reason: String, line: Int? = nil) -> PlaylistError {
        PlaylistError(.tooLarge, reason, line: line)
    }

    static func undefinedVariable(_ name: String, line: Int) -> PlaylistError {
        PlaylistError(.undefinedVariable, "the variable \(name.prefix(64)) is used before it is defined", line: line)
    }

    /// - Throws: where a text has more bytes than any playlist.
    static func check(size: Int) throws(PlaylistError) {
        guard size <= PlaylistLimits.bytes else {
            throw tooLarge("a playlist of \(size) bytes: more than \(PlaylistLimits.bytes) are not read")
        }
    }
}
