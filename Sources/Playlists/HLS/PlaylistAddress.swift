/// A place in a playlist's text that refers to something else.
package struct PlaylistAddress: Sendable, Equatable {
    /// The kind of thing that an address refers to.
    package enum Role: Sendable, Equatable {
        /// Other playlists of the presentation.
        case variant, iFrames, rendition, renditionReport
        /// Media.
        case segment, part, preloadHint, initialization
        /// A key or a license: as secret as a password.
        case key
        /// Interstitials (`X-ASSET-URI`, `X-ASSET-LIST`).
        case asset
        /// JSON that accompanies the media, and the server that directs players between hosts.
        case sessionData, steering
        /// An entry of a list that is not an HLS playlist of either kind.
        case entry
    }

    // There are as many as segments.
    private let (start, end): (UInt32, UInt32)
    /// The reference, with variables replaced and invalid characters percent-encoded.
    package let reference: String
    package let role: Role

    /// - Parameter range: offsets of the reference in the text, without quotes, half-open.
    package init(range: Range<Int>, reference: String, role: Role) {
        (start, end) = (UInt32(clamping: range.lowerBound), UInt32(clamping: range.upperBound))
        (self.reference, self.role) = (reference, role)
    }

    package var range: Range<Int> { Int(start)..<Int(end) } // no trap: of a range
}
