import CachePolicy
import HTTPModel

extension GenerationHead {
    /// What a head states under certain terms. Its fields are evaluated only once for all requests.
    package final class Reading: Sendable {
        package let directives: ResponseDirectives
        /// The freshness when its age began to count.
        fileprivate let freshnessAtFirst: Freshness
        fileprivate let terms: CacheTerms

        fileprivate init(_ head: GenerationHead, _ terms: CacheTerms) {
            self.terms = terms
            directives = ResponseDirectives(head.fields, terms)
            let freshness = Freshness.of(
                head.fields, head.times, ttl: nil, isListing: head.isListing && !head.isUnchanging, terms: terms,
                directives: directives, now: head.times.validatedAt)
            // What it leads to may live shorter than the list, whose age says nothing of that.
            freshnessAtFirst = head.isListing ? freshness.heuristic(atMost: terms.defaultTTL) : freshness
        }
    }
}

extension GenerationHead {
    /// The head's directives and lifetime, as a cache under these terms reads them.
    package func reading(_ terms: CacheTerms) -> Reading {
        let first = firstReading { Reading(self, terms) }
        // Other terms are those of another rule, or of changed settings, until the next answer of the origin.
        return first.terms == terms ? first : Reading(self, terms)
    }

    /// How long it remains fresh.
    /// - Parameters:
    ///   - ttl: the lifetime that a rule sets.
    ///   - reading: of this head.
    ///   - now: seconds since 1970.
    ///   - instant: nanoseconds of a monotonic clock.
    package func freshness(
        ttl: Int64?, _ reading: Reading, now: Int64, instant: @autoclosure () -> UInt64
    ) -> Freshness {
        guard ttl == nil else { return .of(fields, times, ttl: ttl, now: now) }
        if let live { return live.freshness(age: times.age(at: now), at: instant()) }
        let first = reading.freshnessAtFirst
        return Freshness(
            lifetime: first.lifetime, age: times.age(at: now), source: first.source,
            isValidatedEachTime: first.isValidatedEachTime)
    }
}
