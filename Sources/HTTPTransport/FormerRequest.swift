import CachePolicy
import HTTPModel

/// What is kept of a request for the next one that has the same fields: of a connection's last one, and of a loop's for
/// the next connection.
struct FormerRequest {
    /// Nil if it is too long to be kept.
    private(set) var rest: RequestHead.Rest?
    /// What the handler has read from it (`Exchange.reading`), and whose it was.
    private(set) var reading: (of: AnyObject, client: IPAddress)?

    /// The same after a request with another rest.
    func noting(_ rest: RequestHead.Rest) -> Self {
        // An idle connection must not hold a long one.
        Self(rest: rest.bytes.count <= InputTurn.shortHead ? rest : nil)
    }

    func keeping(_ reading: AnyObject, for client: IPAddress) -> Self {
        Self(rest: rest, reading: rest == nil ? nil : (reading, client))
    }
}
