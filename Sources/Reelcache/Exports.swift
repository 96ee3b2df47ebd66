// What these modules declare as public is part of this module's interface: one value serves programs, the control
// interface, and commands. Everything else in them is visible in this package only.
@_exported import Activity
@_exported import DiskCache
@_exported import Downloads
@_exported import Playlists

/// Which renditions of a playlist to download; by default the best picture with its default sound and no subtitles.
public typealias Renditions = RenditionChoice

extension CacheDownloads {
    /// The totals of all downloads that have not ended.
    public typealias Totals = DownloadTotals
}
