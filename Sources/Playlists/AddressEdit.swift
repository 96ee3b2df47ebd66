/// A replacement of some bytes of a playlist.
package struct AddressEdit: Sendable, Equatable {
    /// Offsets in the original text, half-open; empty for an insertion.
    package let range: Range<Int>
    /// The new text, already escaped; empty for a removal.
    package let replacement: String

    package init(range: Range<Int>, replacement: String) {
        self.range = range
        self.replacement = replacement
    }
}

extension [AddressEdit] {
    /// The text with all edits applied; every other byte stays as it was.
    ///
    ///     original   |-------[====)------[==)----|
    ///     edited     |-------[replacement)---[)--|
    ///
    /// - Parameter bytes: the text for which the edits were created. Edits that overlap an earlier one, or are out
    ///   of bounds, are skipped.
    package func applied(to bytes: [UInt8]) -> [UInt8] {
        let added = reduce(0) { $0 + $1.replacement.utf8.count }
        var edited: [UInt8] = []
        edited.reserveCapacity(bytes.count + added)
        var place = 0
        for edit in sorted(by: Self.isBefore)
        where edit.range.lowerBound >= place && edit.range.upperBound <= bytes.count {
            edited += bytes[place..<edit.range.lowerBound]
            edited += edit.replacement.utf8
            place = edit.range.upperBound
        }
        return edited + bytes[place...]
    }

    /// Of two edits that begin at one place, the longer one comes first and wins: a line that is removed needs no
    /// address.
    private static func isBefore(_ a: AddressEdit, _ b: AddressEdit) -> Bool {
        (a.range.lowerBound, b.range.upperBound) < (b.range.lowerBound, a.range.upperBound)
    }
}
