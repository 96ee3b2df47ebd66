/// How the files and sockets that this process may have open are shared out. Who plays what is not cached yet needs
/// three: its own connection, the origin's, and the file.
package struct DescriptorBudget: Equatable {
    /// Connections of clients.
    let clients: Int
    /// Transfers from origins that run at once, each with a connection.
    let origins: Int
    /// Resources whose files are open, in use or in case.
    let resources: Int
    /// Connections to origins that one loop keeps when they are idle, besides.
    let idleOriginsOfALoop: Int

    /// The highest descriptor that a client's connection may have. Those beyond are for what is open for a moment;
    /// libdispatch, too, ends the process where it cannot read `/proc/PID/stat`.
    let highestOfClients: Int

    /// The databases, the lock, the list of unfinished files, standard streams; and of each loop its own.
    private static func fixed(_ loops: Int) -> Int { 48 + 8 * loops }
    /// For files that are open for a moment: evicted from, verified, exported.
    private static func reserve(_ limit: Int) -> Int { 8 + limit / 16 }
    private static let smallestShare = 8

    /// What a process with so many loops needs to work.
    package static func needed(loops: Int) -> Int {
        // A sixteenth of it is for moments.
        (fixed(loops) + 8 + 3 * smallestShare) * 16 / 15 + 1
    }

    /// - Returns: nil where the limit is too low to work with.
    init?(limit: Int, loops: Int) {
        let share = (limit - Self.fixed(loops) - Self.reserve(limit)) / 3
        guard share >= Self.smallestShare else { return nil }
        clients = share
        resources = min(4096, share)
        highestOfClients = limit - Self.reserve(limit) / 2
        idleOriginsOfALoop = max(1, min(64, share / (4 * loops)))
        // Many loops keep at least one each: half of the share is for transfers all the same.
        origins = max(share - idleOriginsOfALoop * loops, share / 2)
    }
}
