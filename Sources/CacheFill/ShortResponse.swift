import CachePolicy
import DiskCache
import HTTPModel

/// A final response that is not media, in memory: an error, a redirect, a 204.
package final class ShortResponse: Sendable {
    /// The URL that it answers: of several with one key, another may be allowed what this one is not, by its token.
    package let url: String
    package let head: GenerationHead
    package let body: [UInt8]
    /// What it takes of the limit, in bytes.
    let size: Int
    private let absence: ExpectedAbsence?

    /// - Parameter absence: what lets it be reused; nil if its own fields do.
    init(to url: String, _ head: GenerationHead, _ body: [UInt8], absence: ExpectedAbsence? = nil) {
        self.absence = absence
        (self.url, self.head, self.body) = (url, head, body)
        let lines = head.fields.lines.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count }
        let variant = head.variant.fields.reduce(0) { $0 + $1.name.utf8.count + ($1.value?.utf8.count ?? 0) }
        // The fields are held as values and as they are sent.
        size = Self.overhead + body.count + 2 * lines + variant + url.utf8.count + head.finalURL.utf8.count
    }

    /// Of the objects that it consists of.
    private static let overhead = 1 << 10

    /// How long it may be reused; nil if the rules that hold now forbid it.
    /// - Parameters:
    ///   - now: seconds since 1970.
    ///   - instant: nanoseconds of a monotonic clock.
    package func freshness(_ resolvedRule: ResolvedRule, now: Int64, instant: UInt64) -> Freshness? {
        guard absence?.isExpected() != false else { return nil }
        let freshness = head.freshness(ttl: nil, head.reading(resolvedRule.terms), now: now, instant: instant)
        return ShortStoring.isReusable(status: head.status, freshness, resolvedRule) ? freshness : nil
    }
}

extension ShortResponse {
    /// Collects the body of a response that is to become a short one. A value.
    struct Intake {
        let url: String
        let head: GenerationHead
        /// Of the whole body; nil if unknown.
        let length: Int64?
        /// `OpenResource.changes` when it was requested.
        let mark: Int
        /// What lets it be reused; nil if its own fields do.
        let absence: ExpectedAbsence?
        private var body: [UInt8] = []

        init(to url: String, _ head: GenerationHead, length: Int64?, mark: Int, absence: ExpectedAbsence? = nil) {
            (self.url, self.head, self.length, self.mark, self.absence) = (url, head, length, mark, absence)
        }

        /// - Returns: whether it is short so far.
        mutating func take(_ bytes: UnsafeRawBufferPointer) -> Bool {
            // no trap: what has come
            guard Int64(body.count + bytes.count) <= ShortStoring.longestBody else { return false }
            body += bytes
            return true
        }

        /// Whether all of a body of known length has come.
        var isComplete: Bool { length.map { Int64(body.count) >= $0 } ?? false }

        var response: ShortResponse { ShortResponse(to: url, head, body, absence: absence) }
    }
}
