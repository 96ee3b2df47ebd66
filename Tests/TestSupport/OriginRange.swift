import Foundation

/// A single range as a `Range` field spells it (RFC 9110 §14.1.2).
enum OriginRange: Sendable, Equatable {
    /// `a-b`, half-open here.
    case bounded(Range<Int64>)
    /// `a-`
    case from(Int64)
    /// `-n`
    case suffix(Int64)

    /// What a server does with the range.
    enum Selection: Equatable {
        case whole
        case part(Range<Int64>)
        case unsatisfiable
    }

    /// - Returns: `nil` for what a server may ignore: another unit, several ranges, and what is malformed.
    init?(field: String) {
        let parts = field.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, parts[0].lowercased() == "bytes" else { return nil }
        let ends = parts[1].trimmingCharacters(in: .whitespaces).split(separator: "-", omittingEmptySubsequences: false)
            .map(String.init)
        guard ends.count == 2, ends.allSatisfy({ $0.allSatisfy { $0.isASCII && $0.isNumber } }) else { return nil }
        switch (Int64(ends[0]), Int64(ends[1])) {
        case (let first?, let last?) where first <= last && last < .max: self = .bounded(first..<last + 1)
        case (let first?, nil) where ends[1].isEmpty: self = .from(first)
        case (nil, let length?) where ends[0].isEmpty: self = .suffix(length)
        default: return nil
        }
    }

    /// Half-open and not cut to the size, or `nil` when it is empty or the size is needed and unknown.
    func resolved(size: Int64?) -> Range<Int64>? {
        switch self {
        case .bounded(let range): return range
        case .from(let first): return size.flatMap { first < $0 ? first..<$0 : nil }
        case .suffix(let length): return size.flatMap { length > 0 && $0 > 0 ? max(0, $0 - length)..<$0 : nil }
        }
    }

    func selection(size: Int64) -> Selection {
        // A suffix of nothing is satisfiable, but no Content-Range can say so.
        if case .suffix(let length) = self, length > 0, size == 0 { return .whole }
        guard let range = resolved(size: size), range.lowerBound < size else { return .unsatisfiable }
        return .part(range.clamped(to: 0..<size))
    }
}
