/// How much of a request's head the proxy is ready to keep.
package struct RequestLimits: Sendable, Equatable {
    /// Bytes from the first of the head to the end of its empty line, empty lines in front of it included.
    package var maxHeadBytes: Int
    package var maxTargetBytes: Int
    /// Targets that begin so may be longer: a parameter holds a whole URL, percent-encoded once more, and whatever can
    /// be played must be one that can be asked about.
    package var longTargetPrefix = "/api/"
    /// Up to five bytes for each of the other targets: of an `ü` that was sent as it is, `%25C3%25BC`.
    package var maxLongTargetBytes: Int
    package var maxFields: Int

    package init(maxHeadBytes: Int = 64 << 10, maxTargetBytes: Int = 8 << 10, maxFields: Int = 100) {
        self.maxHeadBytes = maxHeadBytes
        self.maxTargetBytes = maxTargetBytes
        maxLongTargetBytes = 6 * maxTargetBytes
        self.maxFields = maxFields
    }
}
