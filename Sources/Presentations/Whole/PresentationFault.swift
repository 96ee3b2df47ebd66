import CacheFill
import CachePolicy
import HTTPModel
import Playlists

/// Why a presentation cannot be downloaded. The description is one line that names the remedy, if there is one.
package enum PresentationFault: Error, Sendable, CustomStringConvertible {
    /// It is live, and the order does not state how long to record it.
    case live
    /// A recording was ordered of something that cannot be recorded.
    case notRecordable(String)
    /// Its first or last bytes were ordered.
    case firstBytes
    /// Nothing in it can be fetched.
    case empty
    /// A part of it is described elsewhere.
    case remote
    case unreadable(OriginURL, PlaylistError)
    /// The first resource, whatever it is, cannot be fetched.
    case first(PrefetchError)
    /// A part of it cannot be fetched.
    /// - name: the part's name, such as `segment 12 of 300`.
    case part(name: String, OriginURL, PrefetchError)
    /// The stream that was being recorded has been away for a while: another attempt may find it again.
    case away(OriginURL, PrefetchError)
    /// The cache cannot be read or written.
    case cache(String)

    package var description: String {
        switch self {
        case .live: "it is a live stream, which has no end: set how long to record it, such as --for 30m"
        case .notRecordable(let reason): reason
        case .firstBytes: "it is a playlist, whose first or last bytes cannot be played: leave out --first and --last"
        case .empty: "the playlist names nothing that can be fetched over HTTP"
        case .remote: "a part of it is described in another document (xlink), which is not supported"
        case .unreadable(let url, let error): "the playlist \(url.absolute.printable) cannot be read: \(error)"
        case .first(let error): "\(error)"
        case .part(let name, let url, let error): "\(name), \(url.absolute.printable): \(error)"
        case .away(let url, let error): "the stream \(url.absolute.printable): \(error)"
        case .cache(let reason): reason
        }
    }
}
