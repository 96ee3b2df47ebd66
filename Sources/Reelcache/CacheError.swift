import DiskCache
import Downloads
import Foundation

/// Why something cannot be done to an open cache. The description is one line that says what to do.
public enum CacheError: Error, Sendable, Equatable {
    /// The cache has been closed.
    case closed
    /// It is no http or https URL that can be fetched; says why.
    case unsupportedURL(String)
    /// The proxy does not serve the URL, as it serves only what is mounted.
    case notServed(URL)
    /// No proxy runs in this cache.
    case noProxy
    /// Nothing of the resource is cached.
    case notCached(URL)
    /// So many bytes of the resource are not cached.
    case incomplete(URL, missing: Int64)
    /// Somebody else reads the whole cache already.
    case validationIsRunning
    /// There is no such download.
    case unknownDownload(Download.ID)
    /// The download cannot be changed in this way, as it is; says why.
    case conflict(String)
    /// What was asked for makes no sense; says why.
    case invalid(String)
    /// The download has ended without success; its `message` says why.
    case downloadFailed(Download)
    /// Somebody has cancelled the download.
    case downloadCancelled(Download)
    /// The disk fails, or the index of the cache does; says how.
    case disk(String)
    /// A closure of a `MediaCacheClient` that the test has not given.
    case unimplemented(String)
}

extension CacheError: CustomStringConvertible, LocalizedError {
    /// What is wrong, in one line.
    public var description: String {
        switch self {
        case .closed: "the cache has been closed: open it again"
        case .unsupportedURL(let reason), .conflict(let reason), .invalid(let reason), .disk(let reason): reason
        case .notServed(let url):
            "\(url.absoluteString) is below no URL that is mounted, and servesAnyOrigin is false: mount it, or set servesAnyOrigin"
        case .noProxy: "no proxy runs in this cache: start it with startProxy"
        case .notCached(let url): "nothing of \(url.absoluteString) is cached"
        case .incomplete(let url, let missing):
            "\(missing) bytes of \(url.absoluteString) are not cached: download it first"
        case .validationIsRunning: "the cache is being validated already: wait until that has ended"
        case .unknownDownload(let id): "there is no download \(id)"
        case .downloadFailed(let download): download.message ?? "\(download.urlText) could not be downloaded"
        case .downloadCancelled(let download): "the download of \(download.urlText) was cancelled"
        case .unimplemented(let name): "the client's \(name) is not implemented"
        }
    }

    /// The same, for `localizedDescription`.
    public var errorDescription: String? { description }
}

extension CacheError {
    init(_ error: StoreError) { self = .disk("\(error)") }

    init(_ error: DownloadError, _ id: Download.ID? = nil) {
        switch error.kind {
        case .unknown: self = id.map { .unknownDownload($0) } ?? .conflict(error.description)
        case .conflict: self = .conflict(error.description)
        case .invalid: self = .invalid(error.description)
        case .disk: self = .disk(error.description)
        }
    }
}
