import HTTPModel

/// When a stored response was received or last validated, and how old it was then: the basis of its age (RFC 9111
/// §4.2.3).
package struct ResponseTimes: Sendable, Equatable {
    /// `response_time`: seconds since 1970.
    package var validatedAt: Int64
    /// `corrected_initial_age`, in seconds.
    package var initialAge: Int64

    package init(validatedAt: Int64, initialAge: Int64 = 0) {
        self.validatedAt = validatedAt
        self.initialAge = initialAge
    }

    /// - Parameters:
    ///   - fields: the fields of the received response, including `Date` and `Age`.
    ///   - requestedAt, receivedAt: seconds since 1970.
    package init(_ fields: HeaderFields, requestedAt: Int64, receivedAt: Int64) {
        // §4.2.3: the time of receipt replaces a missing Date (RFC 9110 §6.6.1).
        let apparentAge = max(0, receivedAt -| (fields["Date"].flatMap(HTTPDate.parse) ?? receivedAt))
        // §5.1: the first of several values counts; an invalid value is ignored.
        let age =
            fields["Age"].flatMap { $0.split(separator: ",").first }.flatMap {
                ASCII.saturatingDecimal(ASCII.trimmed($0.utf8))
            } ?? 0
        validatedAt = receivedAt
        initialAge = max(apparentAge, age +| max(0, receivedAt -| requestedAt))
    }

    /// When an origin made or confirmed the response, by this clock: seconds since 1970.
    package var bornAt: Int64 { validatedAt -| initialAge }

    /// `current_age`, in seconds. A response that was received in the future, because the clock was set back since, is
    /// older than any lifetime: nothing says how old it is.
    package func age(at now: Int64) -> Int64 { initialAge +| residentTime(at: now) }

    /// `resident_time`, in seconds: since the response was received or last validated.
    package func residentTime(at now: Int64) -> Int64 {
        validatedAt -| now > Self.clockStep ? .max : max(0, now -| validatedAt)
    }

    /// Clocks are also set back by seconds, when they are compared with better ones; that changes nothing.
    private static let clockStep: Int64 = 60
}
