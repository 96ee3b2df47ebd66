import CachePolicy
import DiskCache
import Downloads
import Foundation

/// Why an open cache refuses something. The description is one line that tells what to do.
public enum CacheError: Error, Sendable, Equatable {
    /// The cache has been closed.
    case closed
    /// Not an http or https URL that can be fetched; with the reason.
    case unsupportedURL(String)
    /// The proxy does not serve the URL, because it serves mounts only.
    case notServed(URL)
    /// No proxy is running in this cache.
    case noProxy
    /// Nothing of the resource is cached.
    case notCached(URL)
    /// This many bytes of the resource are not cached.
    case incomplete(URL, missing: Int64)
    /// Another validation is reading the whole cache.
    case validationIsRunning
    /// There is no such download.
    case unknownDownload(Download.ID)
    /// The feed is not subscribed; with the reason.
    case unknownFeed(String)
    /// The feed cannot be fetched, or is not one; with the reason.
    case unreadableFeed(String)
    /// The download's state does not permit this change; with the reason.
    case conflict(String)
    /// The order or change is invalid; with the reason.
    case invalid(String)
    /// The download has failed; its `message` has the reason.
    case downloadFailed(Download)
    /// The download was cancelled.
    case downloadCancelled(Download)
    /// The disk or the index of the cache fails; with the error.
    case disk(String)
    /// A closure of a `MediaCacheClient` that the test has not replaced.
    case unimplemented(String)
}

extension CacheError: CustomStringConvertible, LocalizedError {
    /// The reason, in one line.
    public var description: String {
        switch self {
        case .closed: "the cache has been closed: open it again"
        case .unsupportedURL(let reason), .unknownFeed(let reason), .unreadableFeed(let reason), .conflict(let reason),
            .invalid(let reason), .disk(let reason):
            reason
        case .notServed(let url):
            "\(url.absoluteString) is not below a mounted URL, and servesAnyOrigin is false: mount it, or set servesAnyOrigin"
        case .noProxy: "no proxy is running in this cache: start it with startProxy"
        case .notCached(let url): "nothing of \(url.absoluteString) is cached"
        case .incomplete(let url, let missing):
            "\(missing) bytes of \(url.absoluteString) are not cached: download it first"
        case .validationIsRunning: "the cache is being validated already: wait until it has finished"
        case .unknownDownload(let id): "there is no download \(id)"
        case .downloadFailed(let download): download.message ?? "\(download.urlText) could not be downloaded"
        case .downloadCancelled(let download): "the download of \(download.urlText) was cancelled"
        case .unimplemented(let name): "the client's \(name) is not implemented"
        }
    }

    /// The same, for `localizedDescription`.
    public var errorDescription: String? { description }
}

extension OriginURL {
    init(_ url: URL) throws(CacheError) {
        do throws(OriginURLError) { self = try OriginURL(url: url.absoluteString) } catch {
            throw .unsupportedURL(error.naming(url.absoluteString))
        }
    }
}

extension CacheError {
    init(_ error: StoreError) { self = .disk("\(error)") }

    init(_ error: DownloadError, _ id: Download.ID? = nil) {
        switch error.kind {
        case .unknown: self = id.map { .unknownDownload($0) } ?? .conflict(error.description)
        case .notSubscribed: self = .unknownFeed(error.description)
        case .conflict: self = .conflict(error.description)
        case .invalid: self = .invalid(error.description)
        case .unreadable: self = .unreadableFeed(error.description)
        case .closed: self = .closed
        case .disk: self = .disk(error.description)
        }
    }
}
