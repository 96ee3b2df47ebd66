import ControlAPI
import Reelcache
import Upstream

extension RunningProxy {
    /// Reports what happens now, and from then on each change, at most four times a second. Blocks until `report` or
    /// `isWanted` returns false.
    /// - Parameters:
    ///   - patience: how long the proxy may send nothing; it sends something each 15 seconds.
    ///   - isWanted: called at least four times a second, even if nothing arrives.
    ///   - report: returns whether to continue.
    /// - Throws: the errors of `report`; `ControlError` if the proxy ends or hangs.
    package func watchNow(
        patience: Duration = Self.patience, isWanted: @escaping () -> Bool,
        _ report: @escaping (NowReport) throws -> Bool
    ) throws {
        let call = try client.request(\.nowEvents)
        try client.follow(call, patience: patience, isWanted: isWanted) { event in
            event.name == "now" ? try report(try client.decode(NowReport.self, from: event.data, of: call.path)) : true
        }
    }

    /// Three times as long as a stream without events is silent.
    package static var patience: Duration { .seconds(45) }

}

extension ControlClient {
    /// Reads a stream of events until `report` or `isWanted` returns false.
    /// - Throws: the errors of `report`; `ControlError` if the proxy ends or hangs.
    func follow(
        _ call: Call<Void>, patience: Duration = RunningProxy.patience, isWanted: @escaping () -> Bool,
        _ report: @escaping (EventStream.Event) throws -> Bool
    ) throws {
        var call = call
        // Curl measures rates, and that of a stream without events is nearly none.
        call.fetch.stallTimeout = 0
        var (isUnwanted, silence) = (false, Silence())
        call.fetch.isWanted = {
            isUnwanted = isUnwanted || !isWanted()
            silence.look(at: .now)
            return !isUnwanted && silence.length < patience
        }
        var stream = EventStream()
        let proxy = "the proxy at \(baseURL) (process \(processID))"
        let ended = "\(proxy) has ended"
        let isOver: Bool
        do {
            isOver = try receive(call, failed: { _ in ended }) { bytes, _ in
                silence = Silence()
                for event in stream.append(bytes) {
                    guard try report(event) else { return false }
                }
                return true
            }
        } catch {
            if isUnwanted { return }
            if silence.length >= patience {
                throw ControlError("\(proxy) has sent nothing for \(patience.components.seconds) s")
            }
            throw error
        }
        if isOver { throw ControlError(ended) }
    }
}

/// For how long nothing has come. Time in which this process did not run, because it was suspended, does not count.
struct Silence {
    private(set) var length = Duration.zero
    private var lookedAt: ContinuousClock.Instant?

    /// The longest time between two looks of a process that runs.
    private static let longestStep = Duration.seconds(1)

    mutating func look(at now: ContinuousClock.Instant) {
        if let lookedAt { length += min(now - lookedAt, Self.longestStep) }
        lookedAt = now
    }
}
