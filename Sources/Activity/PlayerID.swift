import HTTPModel

/// A player, as far as requests identify it.
package struct PlayerID: Sendable, Hashable {
    /// The client's address, without its port.
    package let address: String
    /// Its `User-Agent`, at most the first 200 scalars; empty if it sends none.
    package let agent: String
    /// Of both: a player is looked up for each of its requests.
    private let textHash: Int

    private static let longestAgent = 200

    /// - Parameters:
    ///   - address: the client's address.
    ///   - agent: its `User-Agent`; nil if it sends none.
    package init(address: String, agent: String?) {
        let agent = agent ?? ""
        self.address = address
        self.agent = agent.utf8.count > Self.longestAgent ? agent.beginning(Self.longestAgent) : agent
        textHash = [address, self.agent].hashValue
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(textHash) }

    package static func == (first: PlayerID, second: PlayerID) -> Bool {
        first.textHash == second.textHash && first.address == second.address && first.agent == second.agent
    }
}
