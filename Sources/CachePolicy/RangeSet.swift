import HTTPModel

/// What a request for several ranges gets (RFC 9110 §14.2, §15.3.7.2, §17.15).
package enum RangeSet: Sendable, Equatable {
    /// At least one; several go out as `multipart/byteranges`, one does not.
    case parts([Range<Int64>])
    /// The field is ignored: that many parts cost more than they save, and whoever asks for them means no good.
    case whole
    /// None of the ranges has a byte in it: 416.
    case unsatisfiable

    /// Ranges in one field; of more the field is ignored.
    package static let mostAsked = 64
    /// Parts in one answer, after ranges close to each other were joined; with more the whole is sent.
    package static let mostParts = 32
    /// What a part takes beside its bytes, about. A gap that is shorter is sent along (§15.3.7.2).
    package static let partOverhead: Int64 = 100

    /// - Parameters:
    ///   - specs: in the order in which they were asked for, which is also that of the parts.
    ///   - length: of the representation.
    package init(_ specs: [ByteRangeSpec], length: Int64) {
        guard specs.count <= Self.mostAsked else {
            self = .whole
            return
        }
        let asked = specs.compactMap { $0.resolve(length: length) }
        let parts = Self.joined(asked)
        self = parts.isEmpty ? .unsatisfiable : parts.count <= Self.mostParts ? .parts(parts) : .whole
    }

    /// Ranges that overlap, or are close to each other, as one, in the place of the first of them that was asked for.
    ///
    ///     asked   3 [===)   2 [====)          1 [==)
    ///                    4 [==)
    ///     parts   2 [==============)          1 [==)
    private static func joined(_ asked: [Range<Int64>]) -> [Range<Int64>] {
        var parts: [(place: Int, range: Range<Int64>)] = []
        for (place, range) in asked.enumerated().sorted(by: { $0.element.lowerBound < $1.element.lowerBound }) {
            guard let last = parts.last, range.lowerBound -| last.range.upperBound < partOverhead else {
                parts.append((place, range))
                continue
            }
            let end = max(last.range.upperBound, range.upperBound)
            // no trap: not before the last one's end
            parts[parts.count - 1] = (min(last.place, place), last.range.lowerBound..<end)
        }
        return parts.sorted { $0.place < $1.place }.map(\.range)
    }

    /// The one to ask an origin for while the length is not known: if that is outside of the representation, all are.
    /// - Returns: nil where the field is ignored in any case.
    package static func opening(_ specs: [ByteRangeSpec]) -> ByteRangeSpec? {
        guard specs.count <= mostAsked else { return nil }
        let first = specs.min { ($0.first ?? .max) < ($1.first ?? .max) }
        // From the start there is something, unless there is nothing at all. Else only a suffix is sure to be inside.
        return first?.first == 0
            ? first
            : specs.max { ($0.suffix ?? 0) < ($1.suffix ?? 0) }.flatMap { ($0.suffix ?? 0) > 0 ? $0 : nil } ?? first
    }
}

extension ByteRangeSpec {
    fileprivate var first: Int64? {
        switch self {
        case .bounded(let first, _), .from(let first): first
        case .suffix: nil
        }
    }

    fileprivate var suffix: Int64? {
        if case .suffix(let count) = self { count } else { nil }
    }
}
