import HTTPModel

/// The answer to a request for several ranges (RFC 9110 §14.2, §15.3.7.2, §17.15).
package enum RangeSet: Sendable, Equatable {
    /// At least one; several are sent as `multipart/byteranges`, a single one is not.
    case parts([Range<Int64>])
    /// The field is ignored: so many parts cost more than they save, and a client that requests them is probably
    /// malicious.
    case whole
    /// No range contains a byte of the resource: 416.
    case unsatisfiable

    /// The limit of ranges in one field; with more, the field is ignored.
    package static let mostRequested = 64
    /// The limit of parts in one answer, after close ranges were joined; with more, the whole is sent.
    package static let mostParts = 32
    /// The approximate overhead of a part. A shorter gap is sent along (§15.3.7.2).
    package static let partOverhead: Int64 = 100

    /// - Parameters:
    ///   - specs: in the requested order, which is also that of the parts.
    ///   - length: the length of the representation.
    package init(_ specs: [ByteRangeSpec], length: Int64) {
        guard specs.count <= Self.mostRequested else {
            self = .whole
            return
        }
        let requested = specs.compactMap { $0.resolve(length: length) }
        let parts = Self.joined(requested)
        self = parts.isEmpty ? .unsatisfiable : parts.count <= Self.mostParts ? .parts(parts) : .whole
    }

    /// Joins ranges that overlap or are close to each other, at the position of the one that was requested first.
    ///
    ///     asked   3 [===)   2 [====)          1 [==)
    ///                    4 [==)
    ///     parts   2 [==============)          1 [==)
    private static func joined(_ requested: [Range<Int64>]) -> [Range<Int64>] {
        var parts: [(place: Int, range: Range<Int64>)] = []
        for (place, range) in requested.enumerated().sorted(by: { $0.element.lowerBound < $1.element.lowerBound }) {
            guard let last = parts.last, range.lowerBound -| last.range.upperBound < partOverhead else {
                parts.append((place, range))
                continue
            }
            let end = max(last.range.upperBound, range.upperBound)
            // no trap: the range does not start before the last one does
            parts[parts.count - 1] = (min(last.place, place), last.range.lowerBound..<end)
        }
        return parts.sorted { $0.place < $1.place }.map(\.range)
    }

    /// The range to request from an origin while the length is unknown: if it is outside of the representation, all
    /// are.
    /// - Returns: nil if the field is ignored in any case.
    package static func opening(_ specs: [ByteRangeSpec]) -> ByteRangeSpec? {
        guard specs.count <= mostRequested else { return nil }
        let first = specs.min { ($0.first ?? .max) < ($1.first ?? .max) }
        // A range from 0 contains a byte unless the resource is empty. Otherwise only a suffix is sure to.
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
