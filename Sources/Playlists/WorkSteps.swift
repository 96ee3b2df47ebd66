extension PlaylistLimits {
    /// Counts the steps of work on foreign documents, in debug builds only: tests assert how they grow.
    package enum WorkSteps {
        #if DEBUG
        /// Counts what runs in the task that sets it.
        @TaskLocal package static var counter: (@Sendable (Int) -> Void)?
        #endif

        @inline(__always)
        package static func take(_ steps: Int = 1) {
            #if DEBUG
            counter?(steps)
            #endif
        }
    }
}
