/// A replacement of some bytes of a playlist.
package struct AddressEdit: Sendable, Equatable {
    /// Offsets in the original text, half-open; empty where text is inserted.
    package let range: Range<Int>
    /// As it stands in the text afterwards, already escaped. Empty where text is removed.
    package let replacement: String

    package init(range: Range<Int>, replacement: String) {
        self.range = range
        self.replacement = replacement
    }
}

extension [AddressEdit] {
    /// The text with all edits made, and every other byte as it was.
    ///
    ///     original   |-------[====)------[==)----|
    ///     edited     |-------[replacement)---[)--|
    ///
    /// - Parameter bytes: the text that the edits were made for. Edits that overlap one before, or lie outside, are
    ///   left out.
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

    /// Of two that begin at one place, the one that reaches further counts: a line that is removed needs no address.
    private static func isBefore(_ a: AddressEdit, _ b: AddressEdit) -> Bool {
        (a.range.lowerBound, b.range.upperBound) < (b.range.lowerBound, a.range.upperBound)
    }
}
