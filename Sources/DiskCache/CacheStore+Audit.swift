import CachePolicy
import Foundation

/// Everything read again.
extension CacheStore {
    /// Reads everything again and compares checksums. Resources may be read, filled and evicted meanwhile.
    /// - Parameters:
    ///   - repairs: whether what is found is dropped.
    ///   - isWanted: told how far it is; false ends it.
    package func audit(repairs: Bool, isWanted: (AuditProgress) -> Bool) throws(StoreError) -> AuditReport {
        queue.sync { checkpoint() }
        var report = AuditReport()
        var progress = AuditProgress(
            resources: 0, totalResources: try index.counts().resources, bytes: 0,
            totalBytes: try index.meta(.dataBytes) ?? 0)
        var place: Int64 = 0
        while true {
            let page = try index.page(after: place, limit: 64)
            guard let last = page.last else { break }
            place = last.resource
            for item in page {
                let isThrough = try audit(item.key, item.generation, repairs, &report) { bytes in
                    progress.bytes = bytes
                    return isWanted(progress) && !isEnding.load(ordering: .relaxed)
                }
                guard isThrough else {
                    report.isComplete = false
                    return report
                }
                progress.resources += 1
                progress.bytes = report.bytes
            }
            // What was opened for this need not stay open.
            queue.sync { _ = closeUnused() }
        }
        report.isComplete = auditFiles(repairs, &report)
        if repairs { queue.sync { checkpoint(touchesToo: true) } }
        report.isRepaired = repairs
        return report
    }

    /// - Parameter goesOn: told how many bytes have been read before each extent; false ends it.
    /// - Returns: whether it went on to the end.
    private func audit(
        _ key: CacheKey, _ id: GenerationID, _ repairs: Bool, _ report: inout AuditReport, goesOn: (Int64) -> Bool
    ) throws(StoreError) -> Bool {
        guard goesOn(report.bytes) else { return false }
        let found: CacheIndex.GenerationRow?
        do throws(StoreError) { found = try index.generation(id) } catch .damagedRow {
            report.damagedRows.append(key.text)
            if repairs { queue.sync { removeDamage(of: id) } }
            return true
        }
        guard let row = found else { return true }
        guard FileSystem.exists(path(of: id)) else {
            // Evicted or replaced since it was listed, or gone.
            guard try index.generation(id) != nil else { return true }
            report.missingFiles.append(key.text)
            if repairs { queue.sync { _ = removeGenerations([id]) } }
            return true
        }
        guard let generation = try load(key), generation.id == id else { return true }
        report.resources += 1
        var damage = AuditReport.Damage(url: key.text, chunks: 0, spans: [])
        for ordinal in 0..<row.geometry.extentCount(length: row.length) {
            guard ordinal == 0 || goesOn(report.bytes) else { return false }
            guard let bad = try audit(generation, row, ordinal, repairs, &report) else { continue }
            damage.chunks += bad.count
            damage.spans += bad.runs.map { run in
                let first = ordinal * ChunkGeometry.chunksPerExtent
                return ByteSpan(
                    row.geometry.chunkStart(
                        first + run.lowerBound)..<row.geometry.chunkBytes(
                            first + run.upperBound - 1, length: row.length
                        ).upperBound)
            }
        }
        if damage.chunks > 0 { report.damaged.append(damage) }
        return true
    }

    /// - Returns: the chunks that are damaged; nil where there is nothing to read.
    private func audit(
        _ generation: Generation, _ row: CacheIndex.GenerationRow, _ ordinal: Int, _ repairs: Bool,
        _ report: inout AuditReport
    ) throws(StoreError) -> Presence? {
        // Under the lease nothing is evicted; what is written meanwhile is not in the row.
        let lease = HeldLease(generation.leaseForWriting(ordinal))
        defer { withExtendedLifetime(lease) {} }
        guard let extent = try index.extent(ordinal, of: row) else { return nil }
        let chunks = Presence(bits: extent.present.bits & generation.saved(ofExtent: ordinal).bits)
        guard !chunks.isEmpty else { return nil }
        report.chunks += chunks.count
        report.bytes += row.geometry.bodyBytes(of: chunks, inExtent: ordinal, length: row.length)
        // Dropped and written again since: those are others by now.
        let bad = Presence(
            bits: damaged(chunks, of: generation, extent: ordinal, extent.checksums).bits
                & generation.saved(ofExtent: ordinal).bits)
        let sound = Presence(bits: chunks.bits & ~bad.bits)
        let dropped = generation.endVerification(of: sound, bad: repairs ? bad : Presence(), inExtent: ordinal)
        metrics.droppedChunks.add(Int64(dropped))
        if !repairs, !bad.isEmpty { generation.distrust(bad, ofExtent: ordinal) }
        return bad
    }

    /// - Returns: whether it came to the end.
    private func auditFiles(_ repairs: Bool, _ report: inout AuditReport) -> Bool {
        var (files, bytes) = (0, 0 as Int64)
        let isComplete = forEachFile { id in
            guard !isEnding.load(ordering: .relaxed) else { return false }
            queue.sync {
                _ = self.report("look at a file") { () throws(StoreError) in
                    let isOpen = registry.withLock {
                        $0.open[id] != nil || $0.loading[id] != nil || $0.closing.contains(id)
                    }
                    guard !isOpen, !id.isMade(in: session), try !index.isKnown(id) else { return }
                    let taken = FileSystem.allocatedBytes(path(of: id))
                    if repairs { try FileSystem.remove(path(of: id)) }
                    files += 1
                    bytes += taken
                }
            }
            return true
        }
        report.orphanedFiles = files
        report.orphanedBytes = bytes
        return isComplete
    }
}

extension Generation {
    /// Chunks that are damaged are left where they are, but not served before they are verified once more.
    fileprivate func distrust(_ bad: Presence, ofExtent ordinal: Int) {
        state.withLock { state in
            state.wasSealed = false
            state.losses += 1
            state.extents[ordinal].unverified = Presence(
                bits: state.extents[ordinal].unverified.bits | bad.bits & state.extents[ordinal].present.bits)
        }
    }

    /// The chunks that the index knows, and that are still the same.
    fileprivate func saved(ofExtent ordinal: Int) -> Presence {
        state.withLock { Presence(bits: $0.extents[ordinal].present.bits & ~$0.extents[ordinal].unsaved.bits) }
    }
}
