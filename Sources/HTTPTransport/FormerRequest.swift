import CachePolicy
import HTTPModel

/// What is kept of a request for the next one that has the same fields: of a connection's last one, and of a loop's for
/// the next connection.
struct FormerRequest {
    /// Nil if it is too long to be kept.
    private(set) var rest: RequestHead.Rest?
    /// What the handler has read from it (`Exchange.reading`), and whose it was.
    private var reading: (of: AnyObject, client: IPAddress)?

    mutating func note(_ rest: RequestHead.Rest) {
        guard rest !== self.rest else { return }
        reading = nil
        // An idle connection must not hold a long one.
        self.rest = rest.bytes.count <= InputTurn.shortHead ? rest : nil
    }

    /// What was read from it for this client.
    func reading(for client: IPAddress) -> AnyObject? {
        if let reading, reading.client == client { reading.of } else { nil }
    }

    mutating func keep(_ reading: AnyObject, for client: IPAddress) {
        if rest != nil { self.reading = (reading, client) }
    }
}
