import CachePolicy
import HTTPModel

/// Writes an archive, a piece at a time. Each resource is one generation, whatever happens to it meanwhile; its chunks
/// are compared with their checksums as they are read, and damaged ones are dropped and left out.
///
/// `@unchecked Sendable` because its single user makes the next call only after the last one has returned.
package final class ArchiveExport: @unchecked Sendable {
    private let core: StoreCore
    private let queue: StoreQueue
    private let loader: Loader
    private let catalog: ArchiveCatalog
    private var phase = Phase.magic
    private var tally = ArchiveTally()
    private var opened = 0
    /// Resources and bytes of chunks so far.
    package private(set) var resources = 0
    package private(set) var bytes: Int64 = 0

    private enum Phase {
        case magic
        case resources
        case resource(Reading)
        case over
    }

    /// A resource being read.
    private struct Reading {
        let generation: Generation
        let row: CacheIndex.GenerationRow
        var extents: ArraySlice<(ordinal: Int, present: Presence)>
        /// The lease of the first of these, which keeps it from being evicted.
        var lease: HeldLease?
    }

    init(_ core: StoreCore, _ queue: StoreQueue, _ loader: Loader, _ catalog: ArchiveCatalog) {
        (self.core, self.queue, self.loader, self.catalog) = (core, queue, loader, catalog)
    }

    /// How many resources were left out so far because they may not be told.
    package var leftOut: Int { catalog.leftOut }

    /// The next bytes, about 1 MiB at most, or a chunk; nil at the end. Blocks.
    /// - Throws: if the index or the disk fails, or the store is being closed: the archive then remains cut short.
    package func next() throws(StoreError) -> [UInt8]? {
        guard !core.isEnding else { throw .index(detail: "the cache is being closed") }
        switch phase {
        case .magic:
            phase = .resources
            return ArchiveFormat.magic
        case .resources: return try nextResource()
        case .resource(var reading):
            let piece = try nextPiece(&reading)
            phase = piece == nil ? .resources : .resource(reading)
            return piece ?? endOfResource()
        case .over: return nil
        }
    }

    /// The head of the next resource of which there is something, with its first piece.
    private func nextResource() throws(StoreError) -> [UInt8]? {
        while let entry = try catalog.next() {
            closeUnused()
            guard let generation = try loader.load(entry.row.key), generation.id == entry.row.id,
                let line = try? entry.head.line
            else { continue }
            var reading = Reading(generation: generation, row: entry.row, extents: entry.extents[...])
            let former = tally
            line.withUnsafeBytes { tally.begin($0) }
            guard let piece = try nextPiece(&reading) else {
                tally = former
                continue
            }
            phase = .resource(reading)
            resources += 1
            let checksum = line.withUnsafeBytes { ChunkDigest.of($0) }
            return [ArchiveFormat.Block.resource.rawValue] + UInt32(clamping: line.count).bytes + line + checksum.bytes
                + piece
        }
        guard !core.isEnding else { throw .index(detail: "the cache is being closed") }
        phase = .over
        return [ArchiveFormat.Block.end.rawValue] + tally.end
    }

    /// Files that were opened only for this are closed again.
    private func closeUnused() {
        opened += 1
        if opened % 64 == 0 { queue.sync { _ = $0.closer.closeUnused() } }
    }

    private func endOfResource() -> [UInt8] {
        [ArchiveFormat.Block.endOfResource.rawValue] + tally.endOfResource()
    }

    /// The next chunks; nil if there are no more.
    private func nextPiece(_ reading: inout Reading) throws(StoreError) -> [UInt8]? {
        while let (ordinal, left) = reading.extents.first {
            if reading.lease == nil { reading.lease = HeldLease(reading.generation.leaseForWriting(ordinal)) }
            let (bits, rest) = Self.piece(of: left, ordinal, reading.row)
            reading.extents[reading.extents.startIndex].present = rest
            let piece = try chunks(bits, ofExtent: ordinal, reading)
            if rest.isEmpty {
                reading.extents.removeFirst()
                reading.lease = nil
            }
            if let piece { return piece }
        }
        return nil
    }

    /// Splits chunks of an extent into those of the next piece, and the rest.
    private static func piece(of left: Presence, _ ordinal: Int, _ row: CacheIndex.GenerationRow) -> (
        Presence, Presence
    ) {
        // no trap: a chunk is not empty
        let count = max(1, Int(ArchiveFormat.pieceBytes / row.geometry.chunkSize))
        let bits = Presence(Array(left.runs.joined().prefix(count)))
        return (bits, left.subtracting(bits))
    }

    /// - Returns: a block with those of the chunks that are there and sound; nil if none is.
    private func chunks(_ wanted: Presence, ofExtent ordinal: Int, _ reading: Reading) throws(StoreError) -> [UInt8]? {
        let (generation, row) = (reading.generation, reading.row)
        guard let extent = try core.index.rows.extent(ordinal, of: row) else { return nil }
        // Chunks that were dropped and written again meanwhile are not those of the row.
        let there = wanted.intersection(extent.present).intersection(generation.saved(ofExtent: ordinal))
        var (sound, bad, checksums, content) = (Presence(), Presence(), [UInt8](), [UInt8]())
        for bit in there.runs.joined() {
            let chunk = bytes(of: ordinal * ChunkGeometry.chunksPerExtent + bit, reading)
            guard let chunk, chunk.withUnsafeBytes({ ChunkDigest.of($0) }) == extent.checksums[bit] else {
                bad.insert(bit)
                continue
            }
            sound.insert(bit)
            checksums += extent.checksums[bit].bytes
            content += chunk
        }
        if !bad.isEmpty { drop(bad, ofExtent: ordinal, generation) }
        guard !sound.isEmpty else { return nil }
        return block(UInt32(clamping: ordinal).bytes + sound.bits.bytes + extent.lastAccess.bytes + checksums, content)
    }

    private func block(_ head: [UInt8], _ content: [UInt8]) -> [UInt8] {
        head.withUnsafeBytes { tally.add($0) }
        tally.count(Int64(content.count))
        bytes +|= Int64(content.count)
        let checksum = head.withUnsafeBytes { ChunkDigest.of($0) }
        return [ArchiveFormat.Block.chunks.rawValue] + head + checksum.bytes + content
    }

    /// - Returns: nil if the disk cannot read it.
    private func bytes(of chunk: Int, _ reading: Reading) -> [UInt8]? {
        let range = reading.row.geometry.chunkBytes(chunk, length: reading.row.length)
        var bytes = [UInt8](repeating: 0, count: range.count)
        let read = bytes.withUnsafeMutableBytes { buffer in
            Result { () throws(StoreError) in try reading.generation.file.read(into: buffer, at: range.lowerBound) }
        }
        switch read {
        case .success(let count): return count == range.count ? bytes : nil
        case .failure(let error):
            core.faults.note("read chunks for an archive", error, label: "disk-read")
            return nil
        }
    }

    private func drop(_ bad: Presence, ofExtent ordinal: Int, _ generation: Generation) {
        let still = bad.intersection(generation.saved(ofExtent: ordinal))
        let dropped = generation.endVerification(of: Presence(), bad: still, inExtent: ordinal)
        core.metrics.droppedChunks.add(Int64(dropped))
        core.logger.warning(
            "dropped \(dropped) damaged chunks, which will be fetched again",
            metadata: ["resource": "\(generation.key.text)"])
    }
}
