/// A reader's or transfer's lease of an extent: as long as this value lives, the extent's bytes stay in the file.
package struct ExtentLease: ~Copyable, Sendable {
    let generation: Generation
    package let ordinal: Int

    /// - Parameter ordinal: an extent whose lease was already taken in the generation's table.
    init(_ generation: Generation, _ ordinal: Int) {
        self.generation = generation
        self.ordinal = ordinal
    }

    deinit { generation.withChunks { $0.endLease(ordinal) } }
}

/// A lease that can be kept in a collection.
package final class HeldLease: Sendable {
    package let lease: ExtentLease

    package init(_ lease: consuming ExtentLease) { self.lease = lease }
}

extension Generation {
    /// The result of a reader's look at its offset.
    package enum Availability: Sendable, Equatable {
        /// Bytes up to this offset can be sent.
        case bytes(until: Int64)
        /// Present, but its checksum has to be compared first.
        case unverified
        case absent
    }
}
