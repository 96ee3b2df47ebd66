import Foundation
import TestSupport

/// Of what `/stats` answers, that which these tests look at.
struct Statistics: Decodable {
    struct Cache: Decodable {
        let size: Int64
        let evictedExtents, droppedChunks, checkpoints: UInt64
    }
    struct Requests: Decodable {
        let hits, misses: UInt64
    }

    let cache: Cache
    let requests: Requests
    let errors: [String: UInt64]
}

extension ProxyProcess {
    var statistics: Statistics {
        get throws {
            let decoder = JSONDecoder()
            decoder.keyDecodingStrategy = .convertFromSnakeCase
            return try decoder.decode(Statistics.self, from: Data(try get("/stats").body))
        }
    }

    /// Asks until `predicate` holds.
    func waitForStatistics(_ what: String, _ predicate: (Statistics) -> Bool) throws {
        let end = ContinuousClock.now + .patience
        while true {
            let statistics = try statistics
            if predicate(statistics) { return }
            guard ContinuousClock.now < end else {
                throw DeadlinePassed(what: "\(what) in the statistics", instead: "\(statistics)")
            }
        }
    }
}
