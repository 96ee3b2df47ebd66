import CacheFill
import DiskCache
import HTTPModel
import HTTPTransport

/// What is shown of an answer while it is being sent.
extension MediaAnswer {
    /// Where it reads, and how long the resource is; nil before its first byte.
    var reading: (offset: Int64, length: Int64?)? { reader.map { ($0.offset, $0.generation.length) } }

    /// Whether it waits for the origin.
    var isStarved: Bool { reader?.isWaiting ?? !exchange.isAnswered }

    /// The bytes of the body given to the connection, by where they came from.
    var bytesSent: (cached: Int64, fetched: Int64) {
        let known = (exchange.bytesFromCache, exchange.bytesFromOrigin)
        guard let reader else { return known }
        return (known.0 +| reader.given.stored, known.1 +| reader.given.fetched)
    }

    /// The name that the origin gives the file.
    var fileName: String? {
        reader?.generation.head.fields["Content-Disposition"].flatMap { ContentDisposition(parsing: $0)?.fileName }
    }
}

extension Exchange {
    /// Adds the bytes that a reader delivered to the counts of the exchange.
    func note(_ reader: CacheReader) {
        bytesFromCache +|= reader.given.stored
        bytesFromOrigin +|= reader.given.fetched
    }
}
