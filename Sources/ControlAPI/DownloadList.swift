import Downloads

/// A list of downloads.
package struct DownloadList: Codable, Sendable {
    package let downloads: [Download]

    package init(downloads: [Download]) { self.downloads = downloads }
}

/// A part of a listing, with the total number of entries.
package struct DownloadPage: Codable, Sendable {
    package let downloads: [Download]
    package let summary: DownloadTotals
    package let total: Int

    package init(downloads: [Download], summary: DownloadTotals, total: Int) {
        (self.downloads, self.summary, self.total) = (downloads, summary, total)
    }
}

/// The number of dropped history entries.
package struct RemovedDownloads: Codable, Sendable {
    package let removed: Int

    package init(removed: Int) { self.removed = removed }
}

/// A download that the history has dropped, and whose end was not sent.
package struct RemovedDownload: Codable, Sendable {
    package let id: Int64

    package init(id: Int64) { self.id = id }
}
