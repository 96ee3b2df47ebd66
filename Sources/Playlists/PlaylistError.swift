import HTTPModel

/// Why a text cannot be used as a playlist, in one line.
package struct PlaylistError: Error, Sendable, Equatable, CustomStringConvertible {
    package enum Kind: Sendable, Equatable {
        /// It does not begin like a playlist: an HTML page, a segment, an empty text.
        case notAPlaylist
        /// Neither UTF-8 nor another encoding that contains ASCII.
        case encoding
        /// Beyond one of `PlaylistLimits`.
        case tooLarge
        /// A violation of the grammar.
        case malformed
        /// A variable that is used before its definition; this includes circular definitions.
        case undefinedVariable
        /// An `EXT-X-DEFINE:IMPORT` of a variable that the multivariant playlist, if known, does not define.
        case missingImport
        /// An XML document with a document type, which could define entities.
        case documentType
        /// Nobody waits for it any more.
        case cancelled
    }

    package let kind: Kind
    /// What is wrong.
    package let reason: String
    /// Counted from 1; nil if the error does not concern a line.
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

    /// - Throws: if a text is larger than the limit for playlists.
    static func check(size: Int) throws(PlaylistError) {
        guard size <= PlaylistLimits.bytes else {
            throw tooLarge("the playlist has \(size) bytes, more than the limit of \(PlaylistLimits.bytes)")
        }
    }
}
