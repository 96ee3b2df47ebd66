import CacheFill
import CachePolicy
import HTTPModel
import Playlists

/// Why a presentation cannot be downloaded. The description is one line that says what to do, where something can be
/// done.
package enum PresentationFault: Error, Sendable, CustomStringConvertible {
    /// It goes on, and nobody has said for how long it is to be recorded.
    case live
    /// A recording was ordered of what is none that can be recorded.
    case notRecordable(String)
    /// Only its first bytes were ordered.
    case firstBytes
    /// Nothing in it can be fetched.
    case empty
    /// A part of it is described elsewhere.
    case remote
    case unreadable(OriginURL, PlaylistError)
    /// The first resource, whatever it is, cannot be had.
    case first(PrefetchError)
    /// A part of it cannot be had.
    /// - name: what it is, such as `segment 12 of 300`.
    case part(name: String, OriginURL, PrefetchError)
    /// The cache cannot be read or written.
    case cache(String)

    package var description: String {
        switch self {
        case .live: "it is a live stream, which has no end: say for how long to record it, such as --for 30m"
        case .notRecordable(let reason): reason
        case .firstBytes: "it is a playlist, whose first bytes play nothing: leave --first out"
        case .empty: "the playlist names nothing that can be fetched over HTTP"
        case .remote: "a part of it is described in another document (xlink), which is not supported"
        case .unreadable(let url, let error): "the playlist \(url.absolute.printable) cannot be read: \(error)"
        case .first(let error): "\(error)"
        case .part(let name, let url, let error): "\(name), \(url.absolute.printable): \(error)"
        case .cache(let reason): reason
        }
    }
}
