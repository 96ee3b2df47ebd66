import HTTPModel

/// The head of an origin's answer: the parts that tell which bytes of which version it carries.
package struct OriginAnswer: Sendable {
    package let status: Int
    package let fields: HeaderFields
    /// Bytes of the body; nil if unknown.
    package let contentLength: Int64?
    /// nil if there is no usable one.
    package let contentRange: ContentRange?
    /// Where the servers are that it came from.
    package let scope: AddressScope

    package init(
        status: Int, fields: HeaderFields, contentLength: Int64?, contentRange: ContentRange?,
        scope: AddressScope = .private
    ) {
        (self.status, self.fields, self.contentLength) = (status, fields, contentLength)
        (self.contentRange, self.scope) = (contentRange, scope)
    }

    /// The length of the whole resource; nil if unknown.
    package var total: Int64? { status == 206 ? contentRange?.total : contentLength }
}

/// A version of which bytes are stored.
package struct KnownVersion: Sendable {
    package let fields: HeaderFields
    /// nil until the end of a body of unknown length has been seen.
    package let length: Int64?
    /// The `If-Range` value for requesting more of it (`Combining.condition`); nil without a strong validator.
    package let condition: String?
    /// Whether it came from a public address.
    package let isPublic: Bool

    /// - Parameter condition: `Combining.condition` of the fields, if it is already known.
    package init(fields: HeaderFields, length: Int64?, condition: String?, isPublic: Bool = false) {
        (self.fields, self.length, self.condition, self.isPublic) = (fields, length, condition, isPublic)
    }
}

extension Combining {
    /// The bytes that an answer to a request for more of a known version carries.
    package enum Delivery: Sendable, Equatable {
        /// Bytes of exactly this version, from the requested offset.
        case part(Range<Int64>)
        /// All of exactly this version, from its first byte.
        case whole
        /// The origin no longer has the stored version.
        case anotherVersion
        /// The answer does not match the request.
        case unusable(String)
        /// Another status, usually an error.
        case status
    }

    /// Whether an answer to a request from `offset` on says that a version of unknown length ends there.
    package static func ends(_ known: KnownVersion, at offset: Int64, by answer: OriginAnswer) -> Bool {
        answer.status == 416 && known.length == nil && answer.contentRange?.total == offset
    }

    /// Whether an answer carries bytes of a known version, from `offset` or from the start.
    ///
    /// | answer | result |
    /// |---|---|
    /// | 206 of the version, from `offset` | that part |
    /// | 206 of another version or length | another version |
    /// | 206 that is encoded, or describes its bytes impossibly | nothing |
    /// | 200 of the version, and of its length or, by the same URL, of none | the whole |
    /// | 200 of another version, or without a strong validator | another version |
    /// | 416 | another version: the requested range was within the stored length |
    ///
    /// Bytes from a server at a private address are never added to bytes from public ones, which pages of all sites
    /// may read: the name now stands for another server. Where a proxy or a parent does not tell the address, they are
    /// the same version's, and no page may read them from then on.
    /// - Parameters:
    ///   - isChecked: whether the bytes at `offset` are known and will be compared with the answer's. Then a part
    ///     needs no strong validator, if the length is the same and nothing shows another version.
    ///   - isElsewhere: whether the answer comes from another URL than the known bytes, as links expire. RFC 9110
    ///     §15.3.7 lets a 206 omit the date only for the same resource, and §8.8.3 makes tags unique only within one:
    ///     such an answer has to name the validator and the length.
    package static func delivered(
        by answer: OriginAnswer, of known: KnownVersion, from offset: Int64, isChecked: Bool = false,
        isElsewhere: Bool = false
    ) -> Delivery {
        if known.isPublic, answer.scope == .private { return .anotherVersion }
        switch answer.status {
        case 206: return part(answer, of: known, from: offset, isChecked: isChecked, isElsewhere: isElsewhere)
        case 200:
            // §8.8.1: a strong validator stands for the length, too, where a chunked body does not state it.
            let hasSameLength = answer.contentLength == known.length || answer.contentLength == nil && !isElsewhere
            guard ContentEncoding.isUncoded(answer.fields), hasSameLength,
                isSameVersion(answer.fields, isPart: false, stored: known.fields), known.condition != nil,
                known.length != nil || !isElsewhere
            else { return .anotherVersion }
            return .whole
        // RFC 9110 §15.5.17: the requested range was within the known length, so the length has changed.
        case 416: return .anotherVersion
        default: return .status
        }
    }

    private static func part(
        _ answer: OriginAnswer, of known: KnownVersion, from offset: Int64, isChecked: Bool, isElsewhere: Bool
    ) -> Delivery {
        // RFC 9110 §8.4: a range counts bytes of the encoded form.
        guard ContentEncoding.isUncoded(answer.fields) else { return .unusable("the part is encoded") }
        // §15.3.7.1: without a Content-Range, the part cannot be located.
        guard let part = answer.contentRange, let range = part.range else {
            return .unusable(OriginAnswer.lacksRange)
        }
        let hasSameLength = known.length != nil && part.total == known.length
        let isSame =
            isChecked
            ? hasSameLength && mayBeSameVersion(answer.fields, stored: known.fields)
            : (hasSameLength || !isElsewhere && (part.total == known.length || part.total == nil))
                && isSameVersion(answer.fields, isPart: !isElsewhere, stored: known.fields)
        guard isSame else { return .anotherVersion }
        guard range.lowerBound == offset else {
            return .unusable("it answers from byte \(range.lowerBound) instead of \(offset)")
        }
        // A range that ends elsewhere than requested is usable: its bytes are taken up to the requested end, and
        // missing ones are requested again.
        guard answer.isAsLong(as: range) else { return .unusable(OriginAnswer.contradictsLength) }
        return .part(range)
    }
}

extension Freshening {
    /// An origin's verdict on a stored version that is being validated.
    package enum Verdict: Sendable, Equatable {
        /// The stored version is still valid.
        case holds
        /// A 304 about a version other than the stored one: the request must be repeated without a condition.
        case isAboutAnother
        /// A passing error (RFC 9111 §4.3.3): the stored response stays as it was.
        case error
        /// The stored version is gone, or its length has changed; the answer is treated as a first one.
        case gone
        /// The answer is about another version, or an unidentified one; it is treated as a first one.
        case another
        /// The answer does not match the request.
        case unusable(String)
    }

    /// - Parameters:
    ///   - isConditional: whether the request had a condition.
    ///   - isKept: whether the stored version plays even if the origin no longer has it.
    package static func verdict(
        of answer: OriginAnswer, on known: KnownVersion, isConditional: Bool, isKept: Bool = false,
        isRefusable: Bool = false
    ) -> Verdict {
        switch answer.status {
        case 304:
            // RFC 9110 §15.4.5
            guard isConditional else { return .unusable("it answers 304 to a request without a condition") }
            // RFC 9111 §4.3.4
            return isAbout(answer.fields, stored: known.fields) ? .holds : .isAboutAnother
        case 200, 206:
            // The origin ignored the condition, but the version may still be the same.
            guard let condition = known.condition, let other = Combining.condition(for: answer.fields),
                condition.utf8.elementsEqual(other.utf8), answer.total == known.length
            else { return .another }
            return .holds
        case let status where Reuse.isError(status: status, isKept: isKept, isRefusable: isRefusable):
            return .error
        case 416 where isKept: return .error
        case let status where Reuse.isGone(status: status) || status == 416: return .gone
        default: return .another
        }
    }
}
