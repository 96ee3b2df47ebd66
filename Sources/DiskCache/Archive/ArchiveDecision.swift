import CachePolicy
import HTTPModel

/// What the cache has of a resource that an archive has too.
struct OwnVersion: Sendable {
    let id: GenerationID
    let head: GenerationHead
    /// nil while unknown.
    let length: Int64?
    let geometry: ChunkGeometry
    /// In order.
    let present: [Range<Int64>]
    /// Whether it is pinned or downloaded.
    let isKept: Bool
    /// Whether a fetch fills it at this moment.
    let isBeingFilled: Bool

    var cached: Int64 { present.reduce(0) { $0 +| ($1.upperBound -| $1.lowerBound) } }
    var isComplete: Bool { cached == length }

    /// The first byte that an archive has and this has not; the length if there is none.
    func firstLacking(of theirs: ArchivedResource) -> Int64 {
        // no trap: a length is at least 1
        for range in theirs.present ?? [0..<theirs.length] {
            let end = present.first { $0.contains(range.lowerBound) }?.upperBound ?? range.lowerBound
            if end < range.upperBound { return end }
        }
        return theirs.length
    }
}

/// What to do with a resource of an archive. Pure.
enum ArchiveDecision: Equatable {
    /// Nothing of it is cached.
    case add
    /// It is the cached version: add the chunks that are absent.
    case extend
    /// It takes the place of what is cached.
    case replace
    case pass(Reason)

    enum Reason: Equatable {
        /// It is the cached version, of which at least as much is cached.
        case present
        /// The cached version is newer.
        case older
        /// The cached version is pinned or downloaded, or just being fetched or downloaded.
        case kept
    }

    /// - Parameters:
    ///   - own: what is cached; nil for nothing.
    ///   - isBeingDownloaded: whether a download of it has not ended.
    init(_ theirs: ArchivedResource, own: OwnVersion?, isBeingDownloaded: Bool) {
        guard let own else {
            self = .add
            return
        }
        let isStronglySame = theirs.isStrongly(own)
        if isStronglySame || theirs.isSaved(own) {
            self = Self.ofSame(theirs, own, isCombinable: isStronglySame && theirs.geometry == own.geometry)
        } else {
            self = Self.ofOther(theirs, own)
        }
        // More of the same bytes does a download no harm.
        if isBeingDownloaded, self == .replace { self = .pass(.kept) }
    }

    private static func ofSame(_ theirs: ArchivedResource, _ own: OwnVersion, isCombinable: Bool) -> ArchiveDecision {
        if own.covers(theirs) { return .pass(.present) }
        if isCombinable { return .extend }
        guard theirs.cached > own.cached else { return .pass(.present) }
        return own.isBeingFilled ? .pass(.kept) : .replace
    }

    private static func ofOther(_ theirs: ArchivedResource, _ own: OwnVersion) -> ArchiveDecision {
        if own.isBeingFilled { return .pass(.kept) }
        if own.present.isEmpty { return .replace }
        if theirs.head.times.validatedAt <= own.head.times.validatedAt { return .pass(.older) }
        // Part of a newer version would not play without its origin.
        return own.isKept && !theirs.isComplete ? .pass(.kept) : .replace
    }
}

extension ArchivedResource {
    /// Whether what is cached of it can get the rest from another archive: its validators show that it is the same.
    var isContinuable: Bool { Combining.isSameVersion(head.fields, isPart: false, stored: head.fields) }

    /// Whether strong validators show that its bytes are those of a cached version.
    fileprivate func isStrongly(_ own: OwnVersion) -> Bool {
        own.length == length && Combining.isSameVersion(head.fields, isPart: false, stored: own.head.fields)
    }

    /// Whether a cached version is from the same response.
    fileprivate func isSaved(_ own: OwnVersion) -> Bool {
        own.length == length && own.head.storedAt == head.storedAt && own.head.finalURL == head.finalURL
            && own.head.fields["ETag"] == head.fields["ETag"]
            && own.head.fields["Last-Modified"] == head.fields["Last-Modified"]
    }
}

extension OwnVersion {
    /// Whether it has all chunks that an archive has.
    fileprivate func covers(_ theirs: ArchivedResource) -> Bool {
        if isComplete { return true }
        guard let wanted = theirs.present else { return false }
        return wanted.allSatisfy { range in
            present.contains { $0.lowerBound <= range.lowerBound && range.upperBound <= $0.upperBound }
        }
    }
}
