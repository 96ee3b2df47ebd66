import CachePolicy
import Foundation
import Metrics

extension CacheStore {
    /// After an unclean end: files that no row speaks of go, and what is there is counted anew.
    ///
    /// What the index says is present is not read here: it is verified before it is first served.
    func recover() throws(StoreError) {
        logger.notice("the cache was not closed in order; what is served from it is verified first")
        var data: Int64 = 0
        for shard in entries(of: configuration.directory + "/data") {
            for name in entries(of: "\(configuration.directory)/data/\(shard)") {
                let path = "\(configuration.directory)/data/\(shard)/\(name)"
                if let id = GenerationID(fileName: name), try index.contains(id) {
                    var info = stat()
                    if stat(path, &info) == 0 { data += CapacityLedger.fileOverhead + Int64(info.st_blocks) * 512 }
                } else if unlink(path) != 0 {
                    logger.error("\(StoreError.lastSystemError("unlink", path))")
                }
            }
        }
        ledger.adopt(data: data)
    }

    private func entries(of directory: String) -> [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
    }
}
