import CachePolicy
import TestSupport
import Testing

@testable import DiskCache

/// What is known of generations that are being opened.
@Suite struct OpenGenerationsTests {
    private let opened: OpenStore
    private var table: OpenGenerations { opened.store.core.open }

    init() throws { opened = try OpenStore() }

    private static let changes: [@Sendable (OpenGenerations, GenerationID) -> Void] = [
        { _ = $0.claimToEvict($1) }, { _ = $0.claimToRemove([$1]) }, { _ = $0.claimClosed($1, isLoadingToo: false) },
        { $0.release([$1]) }, { _ = $0.noteRemoval(of: $1) }, { table, _ in table.notePins() },
        { table, _ in table.endClosing([], keeping: []) },
    ]

    /// Rows that were read before one of these are read again.
    @Test(arguments: 0..<7) func whatMayChangeItsRowsIsNoticed(change: Int) {
        let id = GenerationID(value: 7), (open, changes) = table.look(for: OpenStore.key("a"))
        #expect(open == nil)
        Self.changes[change](table, id)
        #expect(table.beginLoading(id, since: changes).isChanged)
        table.endLoading(id)
    }

    @Test func closingIsNoticed() throws {
        let changes = table.look(for: OpenStore.key("a")).changes, id = try opened.make("a", length: 5).id
        #expect(!table.beginLoading(id, since: changes).isChanged)
        table.endLoading(id)
        let closed = table.takeUnused()
        #expect(closed.count == 1)
        let found = table.beginLoading(id, since: changes)
        #expect(found.isBusy && found.isChanged)
        table.endLoading(id)
        table.endClosing(closed, keeping: [])
        let later = table.beginLoading(id, since: changes)
        #expect(!later.isBusy && later.isChanged)
        table.endLoading(id)
    }

    /// Whoever has pinned it has found no open generation to tell.
    @Test func pinSetWhileItIsOpenedIsReadAgain() throws {
        do { _ = try opened.make("a", Media(seed: 1, size: 5000), filling: 0..<5000) }
        opened.checkpoint()
        opened.closeUnused()
        let changes = table.look(for: OpenStore.key("a")).changes
        let generation = try #require(try opened.load("a"))
        #expect(!table.addLoaded(generation, since: changes).isChanged)
        table.notePins()
        #expect(table.addLoaded(generation, since: changes).isChanged)
    }
}
