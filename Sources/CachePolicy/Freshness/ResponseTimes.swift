import HTTPModel

/// When a stored response was received or last validated, and how old it was then: what its age is reckoned from (RFC
/// 9111 §4.2.3).
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
    ///   - fields: those of the response that was received, `Date` and `Age` among them.
    ///   - requestedAt, receivedAt: seconds since 1970.
    package init(_ fields: HeaderFields, requestedAt: Int64, receivedAt: Int64) {
        // §4.2.3: without a Date the time of receipt stands for it (RFC 9110 §6.6.1).
        let apparentAge = max(0, receivedAt -| (fields["Date"].flatMap(HTTPDate.parse) ?? receivedAt))
        // §5.1: of several the first counts; one that is no number is ignored.
        let age =
            fields["Age"].flatMap { $0.split(separator: ",").first }.flatMap {
                ASCII.saturatingDecimal(ASCII.trimmed($0.utf8))
            } ?? 0
        validatedAt = receivedAt
        initialAge = max(apparentAge, age +| max(0, receivedAt -| requestedAt))
    }

    /// `current_age`, in seconds. A clock that was set back makes nothing younger than it came.
    package func age(at now: Int64) -> Int64 { initialAge +| max(0, now -| validatedAt) }
}
