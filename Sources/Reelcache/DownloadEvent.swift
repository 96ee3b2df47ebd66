import Downloads
import Foundation

/// An event of a download.
public enum DownloadEvent: Sendable, Equatable {
    /// It has progressed, or its state has changed. Of several such events in a row, a slow reader gets the last.
    case progress(Download)
    /// Everything ordered is cached. The last event.
    ///
    /// `localURL` is the URL to play it from, as `MediaCache.localURL(of:)` returns it; nil if there is none, for
    /// the reason that function throws. For example, a download of the beginning alone plays only through the proxy,
    /// and none may be running.
    case completed(Download, localURL: URL?)
    /// It has failed, was cancelled, or cannot be watched any more. The last event.
    case failed(CacheError)
}
