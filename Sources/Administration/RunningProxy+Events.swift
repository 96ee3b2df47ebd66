import ControlAPI
import Reelcache
import Upstream

extension RunningProxy {
    /// Reports what happens now, and from then on each change, at most four times a second. Blocks until `tell` or
    /// `isWanted` returns false.
    /// - Parameters:
    ///   - patience: how long the proxy may send nothing; it sends something each 15 seconds.
    ///   - isWanted: called at least four times a second, even if nothing arrives.
    ///   - tell: returns whether to continue.
    /// - Throws: the errors of `tell`; `CacheAccessError` if the proxy ends or hangs.
    package func watchNow(
        patience: Duration = Self.patience, isWanted: @escaping () -> Bool,
        _ tell: @escaping (NowReport) throws -> Bool
    ) throws {
        try follow("/api/v1/now/events", patience: patience, isWanted: isWanted) { event in
            event.name == "now" ? try tell(try ControlJSON.decode(NowReport.self, from: event.data)) : true
        }
    }

    /// Three times as long as a stream without events is silent.
    package static var patience: Duration { .seconds(45) }

    /// Reads a stream of events until `tell` or `isWanted` returns false.
    /// - Throws: the errors of `tell`; `CacheAccessError` if the proxy ends or hangs.
    func follow(
        _ path: String, _ parameters: [(String, String)] = [], patience: Duration = Self.patience,
        isWanted: @escaping () -> Bool,
        _ tell: @escaping (EventStream.Event) throws -> Bool
    ) throws {
        var request = try request("GET", path, parameters)
        // Curl measures rates, and that of a stream without events is nearly none.
        request.stallTimeout = 0
        var (isUnwanted, silence) = (false, Silence())
        request.isWanted = {
            isUnwanted = isUnwanted || !isWanted()
            silence.look(at: .now)
            return !isUnwanted && silence.length < patience
        }
        var (stream, refused): (EventStream, [UInt8]) = (EventStream(), [])
        var result: Result<Bool, any Error> = .success(true)
        let proxy = "the proxy at \(baseURL) (process \(processID))"
        let ended = "\(proxy) has ended"
        let head: BlockingFetch.Head
        do {
            head = try perform(request, failed: { _ in ended }) { head, bytes, _ in
                silence = Silence()
                guard head.status == 200 else {
                    refused.append(contentsOf: bytes)
                    return .more
                }
                result = Result {
                    for event in stream.append(bytes) {
                        guard try tell(event) else { return false }
                    }
                    return true
                }
                if case .success(true) = result { return .more }
                return .enough
            }
        } catch {
            if isUnwanted { return }
            if silence.length >= patience {
                throw CacheAccessError("\(proxy) has sent nothing for \(patience.components.seconds) s")
            }
            throw error
        }
        guard head.status == 200 else { throw refusal(head.status, refused, path) }
        if try result.get() { throw CacheAccessError(ended) }
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
