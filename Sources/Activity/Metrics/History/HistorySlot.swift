import CXXHash

/// A slot of the history as it is stored: 512 bytes, a sector of a disk.
///
///     0    XXH3 (64 bits, seed 0) of the bytes after it
///     8    the period's start: seconds since 1970, signed
///     16   milliseconds that were counted
///     24   the counts of `HistoryCounts.numbers`
///     72   size and limit of the cache, in bytes
///     88   48 counts of first bytes of hits, 48 of misses: 32 bits each, at most 2³² - 1
///     472  zeros
///
/// Numbers are little-endian, and have 64 bits unless another width is named. A slot that was never written is zeros.
package enum HistorySlot {
    package static let length = 512

    /// The content of a stored slot.
    package enum Content: Equatable {
        case empty
        case period(HistoryPeriod)
        case damaged
    }

    package static func bytes(_ period: HistoryPeriod) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(length)
        func append(_ number: some FixedWidthInteger) {
            withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) }
        }
        append(period.start)
        append(period.milliseconds)
        for path in HistoryCounts.numbers { append(period.counts[keyPath: path]) }
        append(period.size)
        append(period.limit)
        for times in [period.counts.hitTimes, period.counts.missTimes] {
            for count in times.counts { append(UInt32(clamping: count)) }
        }
        bytes.append(contentsOf: repeatElement(0, count: length - checksumLength - bytes.count))
        let checksum = checksum(bytes[...])
        return withUnsafeBytes(of: checksum.littleEndian) { Array($0) } + bytes
    }

    /// - Parameter bytes: `length` bytes.
    package static func read(_ bytes: ArraySlice<UInt8>) -> Content {
        guard bytes.count == length else { return .damaged }
        var rest = bytes
        func next<Number: FixedWidthInteger>(_: Number.Type) -> Number {
            let width = MemoryLayout<Number>.size
            defer { rest = rest.dropFirst(width) }
            return rest.prefix(width).reversed().reduce(0) { $0 << 8 | Number(truncatingIfNeeded: $1) }
        }
        let checksum = next(UInt64.self)
        guard checksum == Self.checksum(rest) else { return bytes.allSatisfy { $0 == 0 } ? .empty : .damaged }
        var period = HistoryPeriod(start: next(Int64.self))
        period.milliseconds = next(Int64.self)
        for path in HistoryCounts.numbers { period.counts[keyPath: path] = next(UInt64.self) }
        (period.size, period.limit) = (next(Int64.self), next(Int64.self))
        for path in [\HistoryCounts.hitTimes, \.missTimes] {
            for bucket in 0..<HistoryTimes.bucketCount {
                period.counts[keyPath: path].counts[bucket] = UInt64(next(UInt32.self))
            }
        }
        guard period.size >= 0, period.limit >= 0 else { return .damaged }
        return .period(period)
    }

    private static let checksumLength = 8

    private static func checksum(_ bytes: ArraySlice<UInt8>) -> UInt64 {
        bytes.withUnsafeBytes { reel_xxh3($0.baseAddress, $0.count) }
    }
}
