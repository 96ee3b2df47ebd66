import CachePolicy
import Synchronization

/// Counts the streams of events of all clients, and of each. From any thread.
final class EventStreams: Sendable {
    static let (most, mostOfAClient) = (128, 64)

    private let counts = Mutex(Counts())

    private struct Counts {
        var all = 0
        var byClient: [IPAddress: Int] = [:]
    }

    /// Counts as one for as long as it exists.
    final class Stream: Sendable {
        private let streams: EventStreams
        private let client: IPAddress?

        fileprivate init(_ streams: EventStreams, _ client: IPAddress?) {
            (self.streams, self.client) = (streams, client)
        }

        deinit { streams.close(client) }
    }

    /// - Parameter client: nil if it is not known.
    func open(_ client: IPAddress?) throws(ControlError) -> Stream {
        let refusal: ControlError? = counts.withLock { counts in
            let ofClient = client.map { counts.byClient[$0, default: 0] } ?? 0
            if ofClient >= Self.mostOfAClient {
                return ControlError(429, "this client follows \(ofClient) streams of events already: end one of them")
            }
            if counts.all >= Self.most {
                return ControlError(503, "\(counts.all) streams of events are followed already: try again later")
            }
            counts.all += 1
            if let client { counts.byClient[client] = ofClient + 1 }
            return nil
        }
        if let refusal { throw refusal }
        return Stream(self, client)
    }

    private func close(_ client: IPAddress?) {
        counts.withLock { counts in
            counts.all -= 1
            guard let client, let count = counts.byClient[client] else { return }
            counts.byClient[client] = count > 1 ? count - 1 : nil
        }
    }
}
