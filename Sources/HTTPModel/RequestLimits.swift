/// How much of a request's head the proxy is ready to keep.
package struct RequestLimits: Sendable, Equatable {
    /// Bytes from the first of the head to the end of its empty line, empty lines in front of it included.
    package var maxHeadBytes: Int
    package var maxTargetBytes: Int
    package var maxFields: Int

    package init(maxHeadBytes: Int = 32768, maxTargetBytes: Int = 8192, maxFields: Int = 100) {
        self.maxHeadBytes = maxHeadBytes
        self.maxTargetBytes = maxTargetBytes
        self.maxFields = maxFields
    }
}
