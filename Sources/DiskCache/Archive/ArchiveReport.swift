import HTTPModel

/// What an import of an archive has done so far.
package struct ArchiveReport: Codable, Sendable, Equatable {
    /// Resources of which nothing was cached.
    package var added = 0
    /// Resources that got further chunks.
    package var extended = 0
    /// Resources that took the place of an older version.
    package var replaced = 0
    /// Resources of which at least as much was cached.
    package var present = 0
    /// Resources whose cached version is newer.
    package var older = 0
    /// Resources whose cached version is pinned, downloaded, or just being fetched.
    package var kept = 0
    /// Resources for which there was no room beside what was read later.
    package var noRoom = 0
    /// Bytes that were added to the cache.
    package var bytes: Int64 = 0

    package init() {}

    /// Resources that were imported, at least in part.
    package var imported: Int { added + extended + replaced }

    /// All resources of the archive so far.
    package var resources: Int { imported + present + older + kept + noRoom }

    package static func + (a: ArchiveReport, b: ArchiveReport) -> ArchiveReport {
        var sum = a
        sum.added += b.added
        sum.extended += b.extended
        sum.replaced += b.replaced
        sum.present += b.present
        sum.older += b.older
        sum.kept += b.kept
        sum.noRoom += b.noRoom
        sum.bytes +|= b.bytes
        return sum
    }
}
