/// A reader's or transfer's hold on an extent: as long as this value lives, the extent's bytes stay in the file.
package struct ExtentLease: ~Copyable, Sendable {
    let generation: Generation
    package let ordinal: Int

    /// - Parameter ordinal: of an extent whose lease was taken in the generation's table.
    init(_ generation: Generation, _ ordinal: Int) {
        self.generation = generation
        self.ordinal = ordinal
    }

    deinit { generation.endLease(ordinal) }
}

/// A lease that can be kept in a list.
package final class HeldLease: Sendable {
    package let lease: ExtentLease

    package init(_ lease: consuming ExtentLease) { self.lease = lease }
}

/// What a reader finds at its offset.
package enum Availability: Sendable, Equatable {
    /// Bytes that can be sent, up to this offset.
    case bytes(until: Int64)
    /// Present, but its checksum has to be compared first.
    case unverified
    case absent
}
