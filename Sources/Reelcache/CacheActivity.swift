import Activity

/// What happens in an open cache at one moment: who plays what, and what is fetched from origins. At most a hundred of
/// each, those that began first; further ones are left out without a count.
public struct CacheActivity: Sendable, Equatable {
    /// What one player reads of one resource or stream.
    public typealias Play = PlayReport
    /// A transfer from an origin.
    public typealias Transfer = TransferReport

    /// Who plays what.
    public let plays: [Play]
    /// What is fetched.
    public let transfers: [Transfer]
}

extension MediaCache {
    /// What happens at this moment. Does not wait for the disk.
    /// - Throws: `CacheError.closed`.
    public func activity() async throws(CacheError) -> CacheActivity {
        try checkOpen()
        guard let report = await live.look()?.report else { throw .closed }
        return CacheActivity(plays: report.plays, transfers: report.transfers)
    }
}
