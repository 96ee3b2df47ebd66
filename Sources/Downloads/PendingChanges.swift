/// What has changed of downloads and is not in the database, or not in the snapshots, yet.
struct PendingChanges {
    /// Downloads that a queue has changed since it was read last.
    struct News {
        /// Those with changes that must not get lost.
        var altered: Set<Int64> = []
        /// Those of which only the progress has changed.
        var progressed: Set<Int64> = []
        /// Those that only look different to people, because of the schedule, a cap or their host.
        var repainted: Set<Int64> = []
        /// Those that have ended, in order.
        var ended: [Int64] = []
    }

    /// Downloads to save.
    private(set) var unsaved: Set<Int64> = []
    private(set) var unsavedRemovals: Set<Int64> = []
    /// Whether there is more than progress to save.
    private(set) var isUrgent = false
    /// Downloads to post.
    private(set) var unposted: Set<Int64> = []
    private(set) var unpostedRemovals: [Int64] = []
    /// Downloads that have ended, of which nobody knows yet.
    private var ended: [Int64] = []

    var isEmptyOfUnsaved: Bool { unsaved.isEmpty && unsavedRemovals.isEmpty }

    /// - Parameter saved: downloads that are in the database already.
    mutating func note(_ changes: News, exceptSaving saved: [Int64: DownloadJob] = [:]) {
        let fresh = changes.altered.filter { saved[$0] == nil }
        isUrgent = isUrgent || !fresh.isEmpty
        unsaved.formUnion(fresh)
        unsaved.formUnion(changes.progressed)
        ended += changes.ended
        for ids in [changes.altered, changes.progressed, changes.repainted] { unposted.formUnion(ids) }
    }

    mutating func noteRemoval(_ id: Int64) {
        unsaved.remove(id)
        unposted.remove(id)
        unsavedRemovals.insert(id)
        unpostedRemovals.append(id)
        isUrgent = true
    }

    /// Something besides downloads has to be saved soon.
    mutating func hurry() { isUrgent = true }

    /// An attempt to save begins: if it fails, another follows in a second.
    mutating func saving() { isUrgent = false }

    mutating func takeEnded() -> [Int64] {
        defer { ended = [] }
        return ended
    }

    mutating func noteSaved() { (unsaved, unsavedRemovals) = ([], []) }

    mutating func notePosted() { (unposted, unpostedRemovals) = ([], []) }
}
