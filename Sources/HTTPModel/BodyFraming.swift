/// How a request delimits its body (RFC 9112 §6.3).
package enum BodyFraming: Sendable, Equatable {
    case empty
    /// By its length in bytes, never 0.
    case length(Int64)
    /// As chunks, each preceded by its size (RFC 9112 §7.1).
    case chunked
}
