/// A place in a playlist's text that names something else.
package struct PlaylistAddress: Sendable, Equatable {
    /// What is there.
    package enum Role: Sendable, Equatable {
        /// Other playlists of the presentation.
        case variant, iFrames, rendition, renditionReport
        /// Media.
        case segment, part, preloadHint, initialization
        /// A key or a licence: as secret as a password.
        case key
        /// Interstitials (`X-ASSET-URI`, `X-ASSET-LIST`).
        case asset
        /// JSON beside the media, and the server that moves players between hosts.
        case sessionData, steering
        /// An entry of a list that is neither kind of HLS playlist.
        case entry
    }

    /// Offsets of the reference in the text, without quotes, half-open.
    package let range: Range<Int>
    /// What stands there, with variables replaced, and percent-encoded as far as URLs have to be.
    package let reference: String
    package let role: Role
}
