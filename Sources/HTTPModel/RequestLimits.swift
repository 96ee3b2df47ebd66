/// How much of a request's head the proxy accepts.
package struct RequestLimits: Sendable, Equatable {
    /// Bytes from the head's first byte to the end of its empty line, including empty lines before it.
    package var maxHeadBytes: Int
    package var maxTargetBytes: Int
    /// Targets with this prefix may be longer: a parameter contains a whole URL, percent-encoded again, and the
    /// interface must accept every URL that can be played.
    package var longTargetPrefix = "/api/"
    /// A byte of another target may take up to five bytes here: an `ü` that was sent unencoded becomes `%25C3%25BC`.
    package var maxLongTargetBytes: Int
    package var maxFields: Int

    package init(maxHeadBytes: Int = 64 << 10, maxTargetBytes: Int = 8 << 10, maxFields: Int = 100) {
        self.maxHeadBytes = maxHeadBytes
        self.maxTargetBytes = maxTargetBytes
        maxLongTargetBytes = 6 * maxTargetBytes
        self.maxFields = maxFields
    }
}
