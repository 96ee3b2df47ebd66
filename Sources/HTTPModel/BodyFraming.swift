/// How a request says where its body ends (RFC 9112 §6.3).
package enum BodyFraming: Sendable, Equatable {
    case empty
    /// By its length in bytes, which is not 0.
    case length(Int64)
    /// It comes in chunks, each with its size before it (RFC 9112 §7.1).
    case chunked
}
