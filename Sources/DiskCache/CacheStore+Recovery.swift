import CachePolicy
import Foundation
import Metrics

extension CacheStore {
    /// After an unclean end: files that no row speaks of go, and what is there is counted anew.
    ///
    /// What the index says is present is not read here: it is verified before it is first served.
    func recover() throws(StoreError) {
        if session > 1 { logger.notice("the cache was not closed in order; what is served from it is verified first") }
        var data: Int64 = 0
        for shard in entries(of: configuration.directory + "/data") {
            for name in entries(of: "\(configuration.directory)/data/\(shard)") {
                let path = "\(configuration.directory)/data/\(shard)/\(name)"
                // Whatever else somebody keeps there is not ours.
                guard let id = GenerationID(fileName: name), path == self.path(of: id) else { continue }
                if let (length, geometry) = try index.shape(of: id) {
                    // Counted as the rows say, as it will be given back by them.
                    let rows = try index.extents(of: id) ?? []
                    data += rows.reduce(CapacityLedger.fileOverhead) { $0 + geometry.blockBytes(of: $1.present, inExtent: $1.ordinal, length: length) }
                    report("give back what was not finished") { () throws(StoreError) in try punchAbsent(id, length, geometry, rows) }
                } else if unlink(path) != 0 {
                    logger.error("\(StoreError.lastSystemError("unlink", path))")
                }
            }
        }
        ledger.adopt(data: data)
    }

    /// Blocks that no row calls present: written after the last checkpoint.
    private func punchAbsent(_ id: GenerationID, _ length: Int64, _ geometry: ChunkGeometry, _ rows: [CacheIndex.ExtentRow]) throws(StoreError) {
        let file = try SparseFile(path: path(of: id), length: length, creating: false)
        var next: Int64 = 0
        for row in rows.sorted(by: { $0.ordinal < $1.ordinal }) {
            for run in row.present.runs {
                let first = row.ordinal * ChunkGeometry.chunksPerExtent
                let start = geometry.chunkStart(first + run.lowerBound)
                if start > next { try file.punchHole(next..<start) }
                next = geometry.chunkBytes(first + run.upperBound - 1, length: length).upperBound
            }
        }
        if length > next { try file.punchHole(next..<length) }
    }

    private func entries(of directory: String) -> [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
    }
}
