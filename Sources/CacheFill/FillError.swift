import CachePolicy
import DiskCache
import Upstream

/// Why bytes that a client waits for do not come.
package enum FillError: Error, Sendable, CustomStringConvertible {
    /// The origin could not be asked, or its answer broke off.
    case upstream(UpstreamError)
    /// The origin answers with an error when it is asked for more of what is cached, or whether that still holds.
    case originStatus(Int)
    /// The origin's bytes are no longer those that are cached (another validator or length).
    case changed
    /// The origin's answer cannot be what was asked for.
    case unusable(String)
    /// The origin's answer is a web page of this type where media was asked for: something on the way may have sent it.
    case strayPage(type: String)
    /// The store has no room that it may take, or the disk failed: the response goes on without the cache.
    case notStored(String)
    /// No origin is asked.
    case offline
    /// The host has asked to be left alone for so many more seconds.
    case busy(retryAfter: Int64)

    package var description: String {
        switch self {
        case .upstream(let error): "\(error)"
        case .originStatus(let status): "the origin answers \(status) when asked about what is cached"
        case .changed: "the origin's content has changed"
        case .unusable(let why): "the origin's answer cannot be used: \(why)"
        case .strayPage(let type):
            "a web page (\(type)) came in place of the media, perhaps from a login or a captive portal: open the URL in a browser"
        case .notStored(let why): why
        case .offline: "this is not cached, and the proxy is offline"
        case .busy(let seconds): "the origin wants to be left alone for \(seconds) s"
        }
    }
}

extension FillError {
    package var kind: FailureKind {
        switch self {
        case .upstream(let error): error.kind
        case .originStatus: .originError
        case .changed: .originChanged
        case .unusable: .originUnusable
        case .strayPage: .page
        case .notStored: .noRoom
        case .offline: .offline
        case .busy: .originBusy
        }
    }
}

extension UpstreamError {
    fileprivate var kind: FailureKind {
        switch self {
        case .addressRefused: .addressRefused
        case .cannotResolve: .originUnresolved
        case .cannotConnect, .badURL: .originUnreachable
        case .tls: .originTLS
        case .timedOut(_, .queue), .timedOut(_, .names), .outOfDescriptors: .proxyBusy
        case .timedOut: .originTimeout
        case .tooManyRedirects, .badRedirect, .protocolViolation: .originUnusable
        case .broken, .interrupted: .originBroken
        }
    }
}
