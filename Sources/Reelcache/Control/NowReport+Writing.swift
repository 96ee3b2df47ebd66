import CachePolicy
import ControlAPI

extension NowReport {
    /// As JSON, but for the downloads, which may have been written before.
    func members(_ mask: URLMask?) throws -> JSONMembers {
        var members = JSONMembers()
        try members.set("time", time, mask)
        try members.set("plays", plays, mask)
        try members.set("transfers", transfers, mask)
        try members.set("queue", queue, mask)
        try members.set("cache", cache, mask)
        try members.set("served", served, mask)
        try members.set("hidden", hidden, mask)
        return members
    }

    /// With half of each list; nil if they are empty.
    var half: NowReport? {
        guard !plays.isEmpty || !transfers.isEmpty || !downloads.isEmpty else { return nil }
        var half = self
        (half.plays, half.transfers) = (
            Array(plays.prefix(plays.count / 2)), Array(transfers.prefix(transfers.count / 2))
        )
        half.downloads = Array(downloads.prefix(downloads.count / 2))
        half.hidden.plays += plays.count - half.plays.count
        half.hidden.transfers += transfers.count - half.transfers.count
        half.hidden.downloads += downloads.count - half.downloads.count
        return half
    }

    /// Whether something else happens than at another moment.
    func differs(from other: NowReport?) -> Bool {
        guard var other else { return true }
        other.time = time
        return self != other
    }
}
