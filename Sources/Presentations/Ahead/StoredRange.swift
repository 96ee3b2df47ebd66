import CacheFill
import CachePolicy
import DiskCache
import EventIO

/// Reads a short range of a resource from the cache, if all of it is cached. Loop-bound.
final class StoredRange {
    private let reader: CacheReader
    private let onEnd: ([UInt8]) -> Void
    private var bytes: [UInt8] = []

    /// An index of 65,535 segments is shorter than 1 MiB.
    static let longest: Int64 = 4 << 20

    /// - Parameter end: called on the loop, perhaps before this returns; not called if the range is not cached, is
    ///   longer than `longest`, or cannot be read.
    static func read(
        _ range: Range<Int64>, of url: OriginURL, _ demand: Demand, on filler: LoopFiller,
        then end: @escaping ([UInt8]) -> Void
    ) {
        let (key, rule) = filler.filler.policy.value.resolve(url)
        let resource = filler.filler.resource(key)
        // If the cache's index has to be queried first, the next request finds the result.
        guard range.count <= longest, case .generation(let generation) = filler.filler.look(at: resource, wake: {}),
            let length = generation.length, range.upperBound <= length, generation.coverage(of: range) == .whole
        else { return }
        let reader = CacheReader(
            generation, from: range.lowerBound, to: range.upperBound, resource: resource, host: url.host,
            demand: demand.next(url, span: nil, resolvedRule: rule, whole: nil), filler: filler)
        reader.count(asSent: false)
        let reading = StoredRange(reader, onEnd: end)
        reader.onReady = { reading.proceed() }
        reading.proceed()
    }

    private init(_ reader: CacheReader, onEnd: @escaping ([UInt8]) -> Void) {
        (self.reader, self.onEnd) = (reader, onEnd)
    }

    private func proceed() {
        while true {
            switch reader.next(limit: 64 << 10, copies: true) {
            case .bytes(let piece, _, _): bytes += piece
            case .wait: return
            case .end:
                reader.finish()
                return onEnd(bytes)
            case .failed: return reader.finish()
            }
        }
    }
}
