import CachePolicy
import ControlAPI
import Synchronization

/// Counts answers of one kind that are being sent, of all clients and of each. From any thread.
final class OpenAnswers: Sendable {
    let (most, mostOfAClient): (Int, Int)
    /// What they are, in the plural.
    private let name: String
    private let counts = Mutex(Counts())

    private struct Counts {
        var all = 0
        var byClient: [IPAddress: Int] = [:]
    }

    init(_ name: String, most: Int, mostOfAClient: Int) {
        (self.name, self.most, self.mostOfAClient) = (name, most, mostOfAClient)
    }

    /// Counts as one for as long as it exists.
    final class Answer: Sendable {
        private let answers: OpenAnswers
        private let client: IPAddress?

        fileprivate init(_ answers: OpenAnswers, _ client: IPAddress?) {
            (self.answers, self.client) = (answers, client)
        }

        deinit { answers.close(client) }
    }

    /// - Parameter client: nil if it is not known.
    func open(_ client: IPAddress?) throws(ControlError) -> Answer {
        let refusal: ControlError? = counts.withLock { counts in
            let ofClient = client.map { counts.byClient[$0, default: 0] } ?? 0
            if ofClient >= mostOfAClient {
                return ControlError(429, "this client reads \(ofClient) \(name) already: end one of them, or wait")
            }
            if counts.all >= most {
                return ControlError(503, "\(counts.all) \(name) are being read already: try again later")
            }
            counts.all += 1
            if let client { counts.byClient[client] = ofClient + 1 }
            return nil
        }
        if let refusal { throw refusal }
        return Answer(self, client)
    }

    private func close(_ client: IPAddress?) {
        counts.withLock { counts in
            counts.all -= 1
            guard let client, let count = counts.byClient[client] else { return }
            counts.byClient[client] = count > 1 ? count - 1 : nil
        }
    }
}
