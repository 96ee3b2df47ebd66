/// Where the servers are that a response came from: who may read it depends on that.
package enum AddressScope: Int, Sendable, Comparable {
    /// All of them have public addresses, where anybody could get the same.
    case `public`
    /// A proxy or a parent has contacted them, and does not tell their addresses.
    case unknown
    /// One of them is on this machine, on its networks or at another address of a private network.
    case `private`

    package static func < (a: AddressScope, b: AddressScope) -> Bool { a.rawValue < b.rawValue }

    /// That of a response in which both had a part.
    package mutating func add(_ other: AddressScope) { self = max(self, other) }
}
