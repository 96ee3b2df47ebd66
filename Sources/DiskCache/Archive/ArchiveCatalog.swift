import CachePolicy
import Foundation
import HTTPModel

/// The resources of a cache for an archive: those that were there when it began, the most recently read first.
///
/// Its single user makes the next call only after the last one has returned.
final class ArchiveCatalog {
    /// A resource, and which of its chunks the index knows.
    struct Entry {
        let row: CacheIndex.GenerationRow
        let head: ArchiveHead
        /// By extent, in order.
        let extents: [(ordinal: Int, present: Presence)]
    }

    private let core: StoreCore
    private let queue: StoreQueue
    private let isTold: @Sendable ([UInt8]) -> Bool
    /// Those that are left, the last one first.
    private var selected: [ArchiveSelection]
    /// How many resources were left out because their heads may not be told.
    private(set) var leftOut = 0

    /// - Parameters:
    ///   - selected: only these, in this order; nil for all.
    ///   - isTold: whether a head, as JSON, may be told.
    init(
        _ core: StoreCore, _ queue: StoreQueue, only selected: [ArchiveSelection]?,
        isTold: @escaping @Sendable ([UInt8]) -> Bool
    ) throws(StoreError) {
        (self.core, self.queue, self.isTold) = (core, queue, isTold)
        // Until then, the index does not know the last chunks and reads.
        queue.sync { $0.checkpointer.checkpoint(touchesToo: true) }
        if let selected {
            self.selected = selected.reversed()
        } else {
            self.selected = try core.index.listing.recentGenerations().reversed().map { ArchiveSelection($0) }
        }
    }

    /// The next resource that is still there; nil at the end.
    func next() throws(StoreError) -> Entry? {
        while let next = selected.popLast(), !core.isEnding {
            if let entry = try entry(of: next) { return entry }
        }
        return nil
    }

    private func entry(of selection: ArchiveSelection) throws(StoreError) -> Entry? {
        let found: CacheIndex.GenerationRow?
        // A damaged one is left to whoever reads it.
        do throws(StoreError) { found = try core.index.rows.generation(selection.id) } catch .damagedRow { return nil }
        guard let row = found else { return nil }
        let extents = try core.index.rows.presence(of: row)
        guard !extents.isEmpty else { return nil }
        let head = ArchiveHead(
            row, present: row.geometry.ranges(of: extents.map { ($0.ordinal, $0.present) }, length: row.length),
            lastAccess: extents.reduce(0) { max($0, $1.lastAccess) }, kept: try core.index.pins.kept(row.key))
        guard head.isPortable(now: AccessClock.now()) else { return nil }
        guard let line = try? head.line, line.count <= ArchiveFormat.longestHead, isTold(line) else {
            leftOut += 1
            return nil
        }
        let first = row.geometry.chunk(at: min(selection.start, row.length))
        let chosen = extents.map { extent in
            let start = extent.ordinal * ChunkGeometry.chunksPerExtent
            return (extent.ordinal, Presence(extent.present.runs.joined().filter { start + $0 >= first }))
        }
        return Entry(row: row, head: head, extents: chosen.filter { !$0.1.isEmpty })
    }
}

/// A list of what an archive of the cache would have: heads as lines of JSON, and at its end an `ArchiveListEnd`.
///
/// `@unchecked Sendable` because its single user makes the next call only after the last one has returned.
package final class ArchiveList: @unchecked Sendable {
    private let catalog: ArchiveCatalog
    private var end = ArchiveListEnd()
    private static let linesAtOnce = 64

    init(_ catalog: ArchiveCatalog) { self.catalog = catalog }

    /// The next lines, each with a line feed; nil at the end. Blocks.
    package func next() throws -> [UInt8]? {
        guard !end.isEnd else { return nil }
        var lines: [UInt8] = []
        for _ in 0..<Self.linesAtOnce {
            guard let entry = try catalog.next() else { return try lines + lastLine() }
            end.resources += 1
            lines += try entry.head.line + [ASCII.lineFeed]
        }
        return lines
    }

    private func lastLine() throws -> [UInt8] {
        (end.isEnd, end.leftOut) = (true, catalog.leftOut)
        return [UInt8](try JSONEncoder().encode(end)) + [ASCII.lineFeed]
    }
}

/// The last line of a list.
package struct ArchiveListEnd: Codable, Sendable {
    package var isEnd = false
    /// The number of lines before.
    package var resources = 0
    /// How many resources are not listed because they may not be told.
    package var leftOut = 0

    private enum CodingKeys: String, CodingKey {
        case isEnd = "end"
        case resources
        case leftOut = "left_out"
    }

    /// - Returns: nil for another line.
    package init?(line: some Sequence<UInt8>) {
        guard let end = try? JSONDecoder().decode(Self.self, from: Data(line)), end.isEnd else { return nil }
        self = end
    }

    init() {}
}
