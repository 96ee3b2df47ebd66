import CachePolicy

/// Makes resources parts of presentations. On the store's queue.
final class Joiner {
    private let core: StoreCore
    private let pins: PinnedCopy

    init(_ core: StoreCore, _ pins: PinnedCopy) { (self.core, self.pins) = (core, pins) }

    /// Moves the resources' own parts too. If the presentation is pinned, all of them become pinned.
    func join(_ keys: [CacheKey], to whole: CacheKey) throws(StoreError) {
        let root = try core.index.parts.whole(of: whole) ?? whole
        // Generations that the index does not know yet.
        for key in keys where key != root { core.open.newest(of: key)?.setWhole(root) }
        let pinned = try core.index.parts.join(keys, to: root)
        // Update these too: when they are saved later, they would bring back a whole that may have lost its row.
        let former = Set(keys)
        for open in core.open.all where open.key != root && open.whole.map(former.contains) == true {
            open.setWhole(root)
        }
        try notePinned(pinned)
    }

    /// Parts that are now pinned with their whole.
    func notePinned(_ keys: [CacheKey]) throws(StoreError) {
        guard !keys.isEmpty else { return }
        core.open.notePins()
        for key in keys { core.open.newest(of: key)?.setKept(true) }
        try pins.copyAll(of: keys, from: core.index)
    }
}
