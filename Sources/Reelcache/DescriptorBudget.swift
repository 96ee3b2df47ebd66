/// The shares of the files and sockets that this process may have open. Playing a resource that is not cached takes
/// three: the client's connection, the origin's, and the file.
package struct DescriptorBudget: Equatable {
    /// The most connections of clients.
    let clients: Int
    /// The most connections of clients where those beyond are refused: each loop may be accepting another one.
    let admittedClients: Int
    /// The most refused connections that one loop keeps open for a moment, in addition.
    let refusedOfALoop: Int
    /// The most simultaneous transfers from origins, each with a connection.
    let origins: Int
    /// The most resources whose files are open, in use or kept open for later.
    let resources: Int
    /// The most idle connections to origins that one loop keeps, in addition.
    let idleOriginsOfALoop: Int

    /// The highest descriptor that a client's connection may have. Those beyond are for files that are open for a
    /// moment; libdispatch needs one too, as it ends the process if it cannot read `/proc/PID/stat`.
    let highestOfClients: Int

    /// The databases, the lock, the list of unfinished files, the standard streams, and those that each loop needs.
    private static func fixed(_ loops: Int) -> Int { 48 + 8 * loops }
    /// For files that are open for a moment, to evict from, verify or export them.
    private static func reserve(_ limit: Int) -> Int { 8 + limit / 16 }
    private static let smallestShare = 8

    /// The lowest limit that a process with this many loops can work with.
    package static func needed(loops: Int) -> Int {
        // A sixteenth of the limit is the reserve.
        (fixed(loops) + 8 + 3 * smallestShare) * 16 / 15 + 1
    }

    /// - Returns: nil if the limit is too low.
    init?(limit: Int, loops: Int) {
        let share = (limit - Self.fixed(loops) - Self.reserve(limit)) / 3
        guard share >= Self.smallestShare else { return nil }
        refusedOfALoop = max(1, min(64, share / (8 * loops)))
        clients = max(share - refusedOfALoop * loops, share / 2)
        admittedClients = max(1, clients - loops)
        resources = min(4096, share)
        highestOfClients = limit - Self.reserve(limit) / 2
        idleOriginsOfALoop = max(1, min(64, share / (4 * loops)))
        // Many loops keep at least one each; transfers get half of the share nevertheless.
        origins = max(share - idleOriginsOfALoop * loops, share / 2)
    }
}
