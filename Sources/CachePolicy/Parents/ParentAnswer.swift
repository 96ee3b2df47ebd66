import HTTPModel

/// What a parent's answer is worth. Pure.
///
/// | answer | meaning |
/// |---|---|
/// | a status below 400 | the resource, from the parent's cache or its origin |
/// | an error, and the parent's member of `Cache-Status` has `hit` or `fwd-status` | the origin's error: it passes |
/// | 503, and that member has `detail=origin-busy` | the origin's error, too: it has asked for a back-off |
/// | any other error | the parent's own, or unknown whose: the next parent, or the origin, is asked |
///
/// A parent that does not send `Cache-Status` only costs a request more where the origin has an error.
package enum ParentAnswer: Sendable, Equatable {
    /// What the resource's origin said.
    case origins
    /// The parent failed by itself.
    case own
    /// The request has passed this proxy before (508, RFC 5842 §7.2): the parents form a circle.
    case circle

    package init(status: Int, fields: HeaderFields) {
        guard status >= 400 else {
            self = .origins
            return
        }
        // RFC 9211 §2: each cache appends its member, so the parent's is the last.
        if let member = ReceivedCacheStatus(parsing: fields.combined("Cache-Status"))?.members.last,
            member.isHit || member.hasForwardStatus
                || status == 503 && member.detail == FailureKind.originBusy.rawValue
        {
            self = .origins
        } else {
            self = status == 508 ? .circle : .own
        }
    }
}

/// The field by which a parent tells its children that a response came from public addresses. It is believed from
/// parents alone, and removed from all answers of origins.
package enum SourceField {
    package static let name: StaticString = "Reelcache-Source"
    package static let isPublic = "public"

    /// Whether a parent states that all addresses that it contacted were public.
    package static func statesPublic(_ fields: HeaderFields) -> Bool { fields.combined("\(name)") == isPublic }
}
