import HTTPModel

/// The head of an origin's answer, as far as it says which bytes of which version come.
package struct OriginAnswer: Sendable {
    package let status: Int
    package let fields: HeaderFields
    /// Bytes of the body; nil where it is not told.
    package let contentLength: Int64?
    /// nil where there is none that can be used.
    package let contentRange: ContentRange?
    /// Whether all servers that it came from are at public addresses.
    package let isPublic: Bool

    package init(
        status: Int, fields: HeaderFields, contentLength: Int64?, contentRange: ContentRange?, isPublic: Bool = false
    ) {
        (self.status, self.fields, self.contentLength) = (status, fields, contentLength)
        (self.contentRange, self.isPublic) = (contentRange, isPublic)
    }

    /// The length of the whole that it is, or is a part of; nil where it does not tell.
    package var total: Int64? { status == 206 ? contentRange?.total : contentLength }
}

/// A version of which bytes are stored.
package struct KnownVersion: Sendable {
    package let fields: HeaderFields
    /// nil while the end of a body of unknown length has not been seen.
    package let length: Int64?
    /// The `If-Range` by which more of it is asked for (`Combining.condition`); nil where nothing strong tells it from
    /// others.
    package let condition: String?
    /// Whether it came from a public address.
    package let isPublic: Bool

    /// - Parameter condition: `Combining.condition` of the fields, where that is known already.
    package init(fields: HeaderFields, length: Int64?, condition: String?, isPublic: Bool = false) {
        (self.fields, self.length, self.condition, self.isPublic) = (fields, length, condition, isPublic)
    }
}

extension Combining {
    /// What an answer to a request for more of a known version brings.
    package enum Brought: Sendable, Equatable {
        /// Bytes of this very version, from where they were asked for.
        case part(Range<Int64>)
        /// All of this very version, from its first byte.
        case whole
        /// What is stored is no longer what the origin has.
        case anotherVersion
        /// The answer cannot be what was asked for.
        case unusable(String)
        /// Another status: an error, for the most part.
        case status
    }

    /// Whether an answer brings bytes of a known version, from `offset` on or from the start.
    ///
    /// | answer | brings |
    /// |---|---|
    /// | 206 of the version, from `offset` | that part |
    /// | 206 of another version or length | another version |
    /// | 206 that is encoded, or says of its bytes what cannot be | nothing |
    /// | 200 of the version, and of its length | the whole |
    /// | 200 of another, or one that nothing strong tells | another version |
    /// | 416 | another version: what was asked for lay within the length |
    ///
    /// From a server at a private address nothing is added to what came from public ones, which pages of all sites may
    /// read: the name has come to stand for another.
    package static func brought(by answer: OriginAnswer, of known: KnownVersion, from offset: Int64) -> Brought {
        if known.isPublic, !answer.isPublic { return .anotherVersion }
        switch answer.status {
        case 206: return part(answer, of: known, from: offset)
        case 200:
            guard ContentEncoding.isUncoded(answer.fields), answer.contentLength == known.length,
                isSameVersion(answer.fields, isPart: false, stored: known.fields), known.condition != nil
            else { return .anotherVersion }
            return .whole
        // RFC 9110 §15.5.17: asked within the length that it had, it is of another one now.
        case 416: return .anotherVersion
        default: return .status
        }
    }

    private static func part(_ answer: OriginAnswer, of known: KnownVersion, from offset: Int64) -> Brought {
        // RFC 9110 §8.4: a range counts bytes of the encoded form.
        guard ContentEncoding.isUncoded(answer.fields) else { return .unusable("the part is encoded") }
        // §15.3.7.1: without one nobody knows which part it is.
        guard let part = answer.contentRange, let range = part.range else {
            return .unusable(OriginAnswer.lacksRange)
        }
        guard part.total == known.length || part.total == nil,
            isSameVersion(answer.fields, isPart: true, stored: known.fields)
        else { return .anotherVersion }
        guard range.lowerBound == offset else {
            return .unusable("asked from byte \(offset), it answers from \(range.lowerBound)")
        }
        // §14.4: of a body that is longer or shorter than its Content-Range, nobody knows which bytes it has. A range
        // that ends elsewhere than asked is one to be used all the same: up to what was asked, and what it lacks is
        // asked for again.
        guard answer.contentLength.map({ $0 == range.upperBound -| range.lowerBound }) ?? true else {
            return .unusable("a 206 whose Content-Length is not that of its Content-Range")
        }
        return .part(range)
    }
}

extension Freshening {
    /// What an origin says of a stored version when it is asked whether that still holds.
    package enum Verdict: Sendable, Equatable {
        /// It does.
        case holds
        /// A 304 about another version than the one that was asked about: the origin is to be asked without a
        /// condition.
        case isAboutAnother
        /// It has a bad moment (RFC 9111 §4.3.3): what is stored stays as it was.
        case error
        /// What is stored is gone, or no longer as long as it was; the answer is one like a first.
        case gone
        /// The answer is one about another version, or about none, like a first.
        case another
        /// The answer cannot be what was asked for.
        case unusable(String)
    }

    /// - Parameter isConditional: whether it was asked with a condition.
    package static func verdict(of answer: OriginAnswer, on known: KnownVersion, isConditional: Bool) -> Verdict {
        switch answer.status {
        case 304:
            // RFC 9110 §15.4.5
            guard isConditional else { return .unusable("it answers 304 to a request without a condition") }
            // RFC 9111 §4.3.4
            return isAbout(answer.fields, stored: known.fields) ? .holds : .isAboutAnother
        case 200, 206:
            // The condition was not heeded; the bytes are the same all the same.
            let isSame =
                known.condition != nil && known.condition == Combining.condition(for: answer.fields)
                && answer.total == known.length
            return isSame ? .holds : .another
        case let status where Reuse.isError(status: status): return .error
        case let status where Reuse.isGone(status: status) || status == 416: return .gone
        default: return .another
        }
    }
}
