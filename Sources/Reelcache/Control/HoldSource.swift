// no traps: places are of the chunks of a generation, within its length
import CachePolicy
import ControlAPI
import DiskCache
import EventIO
import HTTPTransport

extension CacheStore {
    func growingFile(of url: OriginURL, _ policy: ProxyPolicy, isWanted: () -> Bool) throws -> FileHold {
        guard let hold = try policy.find(url, { key throws(StoreError) in try holdGrowing(key, isWanted: isWanted) })
        else {
            throw ControlError.notCached(url.absolute)
        }
        return hold
    }

    func completeFile(of url: OriginURL, _ policy: ProxyPolicy, isWanted: () -> Bool) throws -> FileHold {
        switch try policy.find(url, { key throws(StoreError) in try hold(key, isWanted: isWanted) }) {
        case .complete(let hold)?: return hold
        case .incomplete(let missing)?: throw ControlError.incomplete(url.absolute, missing: missing)
        case nil: throw ControlError.notCached(url.absolute)
        }
    }
}

/// Sends a line, and then nothing until the client disconnects; for a growing file, also a line now and then with
/// the ranges that have arrived. Loop-bound.
final class HoldSource: BodySource {
    private let exchange: Exchange
    private var hold: FileHold?
    private var line: BytesSource
    private let isGrowing: Bool
    /// The ranges not reported yet.
    private var missing: [Range<Int64>]
    private var pace: LoopTimer?
    private var isPaced = false
    private static let stepSeconds = 0.1

    init(_ exchange: Exchange, _ hold: FileHold, line: [UInt8], isGrowing: Bool) {
        (self.exchange, self.hold, self.line, self.isGrowing) = (exchange, hold, BytesSource(line), isGrowing)
        missing = isGrowing && hold.length > 0 ? [0..<hold.length] : []
    }

    func next(limit: Int) -> BodyStep {
        if case .span(let span) = line.next(limit: limit) { return .span(span) }
        guard isGrowing, let hold, !isPaced else { return .wait }
        let news = takeNews(hold)
        // The client's copy is useless if the file was lost. This applies even after everything was reported: the
        // client may still be copying.
        guard !hold.isLost else { return .cut }
        isPaced = true
        let timer =
            pace
            ?? LoopTimer(on: exchange.loop) { [weak self] in
                self?.isPaced = false
                self?.exchange.resume()
            }
        pace = timer
        timer.schedule(afterSeconds: Self.stepSeconds)
        guard !news.isEmpty else { return .wait }
        guard let bytes = try? ControlJSON.line(HeldFile.Growth(news)) else { return .cut }
        line = BytesSource(bytes)
        return line.next(limit: limit)
    }

    /// The ranges that have arrived and were not reported.
    private func takeNews(_ hold: FileHold) -> [Range<Int64>] {
        var news: [Range<Int64>] = []
        missing = missing.flatMap { range in
            let gaps = hold.gaps(in: range)
            var place = range.lowerBound
            for gap in gaps + [range.upperBound..<range.upperBound] {
                if place < gap.lowerBound { news.append(place..<gap.lowerBound) }
                place = gap.upperBound
            }
            return gaps
        }
        return news
    }

    func finish() { (hold, pace) = (nil, nil) }
}
