extension ResolvedRule {
    /// The best picture that players are offered of a presentation.
    package struct QualityLimit: Sendable, Hashable {
        /// The usual name of its resolution: 720 for 1280x720; nil for any.
        package var lines: Int?
        /// Its bit rate; nil for any.
        package var bitsPerSecond: Int64?

        package init(lines: Int? = nil, bitsPerSecond: Int64? = nil) {
            (self.lines, self.bitsPerSecond) = (lines, bitsPerSecond)
        }

        package var isNone: Bool { lines == nil && bitsPerSecond == nil }
    }
}
