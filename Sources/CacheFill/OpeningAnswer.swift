import CachePolicy
import DiskCache
import HTTPModel
import Upstream

/// What an origin's first answer says about a resource: which bytes come, whether they are kept, and under which head.
struct OpeningAnswer {
    let first: FirstAnswer
    let storing: Storing
    let head: GenerationHead

    /// Whether it is kept, where others may have it too.
    var isKept: Bool { first.isKept(storing, condition: head.rangeCondition) }

    /// - Parameters:
    ///   - span: what was asked for; nil for the whole.
    ///   - times: from when its age counts.
    init(
        _ answer: UpstreamHead, asked span: UpstreamRequest.Span?, _ demand: Demand, times: ResponseTimes,
        _ store: CacheStore
    ) throws(FillError) {
        do {
            first = try FirstAnswer(answer.answer, asked: span?.spec, longest: Generation.longest)
        } catch {
            switch error {
            case .unusable(let why): throw .unusable(why)
            }
        }
        storing = Storing.decide(
            status: answer.status, fields: answer.fields, total: first.total, request: demand.directives,
            expectsMedia: demand.expectsMedia,
            isCodedPlaylist: !first.isPart && ContentEncoding.isCodedPlaylist(answer.fields, at: demand.url),
            demand.resolvedRule)
        let fields = answer.keptFields(receivedAt: times.validatedAt)
        // Of a part, the rest has the same status as the whole.
        head = GenerationHead(
            status: first.isPart ? 200 : answer.status, fields: storing == .store ? fields.worthKeeping : fields,
            variant: Variant(response: answer.fields, request: demand.sentFields, fingerprint: store.fingerprint),
            finalURL: answer.finalURL,
            isPublic: answer.isFromPublicAddress, storedAt: times.validatedAt, times: times)
    }
}

extension UpstreamHead {
    /// As far as it says which bytes of which version come.
    var answer: OriginAnswer {
        OriginAnswer(
            status: status, fields: fields, contentLength: contentLength, contentRange: contentRange,
            isPublic: isFromPublicAddress)
    }

    /// Whether this is a web page, and what is stored is not.
    package func replacesMedia(_ stored: HeaderFields, _ demand: Demand) -> Bool {
        guard status == 200 || status == 206, !demand.resolvedRule.storesPages, StrayPage.isPage(fields),
            !StrayPage.isPage(stored)
        else { return false }
        return demand.expectsMedia || StrayPage.isMedia(stored)
    }

    /// Without what the connection to the origin needed, or what this proxy says itself.
    /// - Parameter receivedAt: seconds since 1970; stands for a `Date` that is missing (RFC 9110 §6.6.1).
    func keptFields(receivedAt: Int64) -> HeaderFields {
        var fields = self.fields
        fields.removeUnfitForClients()
        fields.remove("Accept-Ranges")
        // RFC 9110 §14.4: with other statuses it means nothing, and parts are told of by this proxy.
        fields.remove("Content-Range")
        if status == 416, let contentRange, contentRange.range == nil {
            fields.append("Content-Range", contentRange.fieldValue)
        }
        if fields["Date"].flatMap(HTTPDate.parse) == nil { fields.replace("Date", HTTPDate.format(receivedAt)) }
        return fields
    }
}

extension UpstreamRequest.Span {
    /// As a request's `Range` says it.
    var spec: ByteRangeSpec {
        switch self {
        case .bounded(let range): .bounded(first: range.lowerBound, last: range.upperBound -| 1)
        case .from(let first): .from(first)
        case .suffix(let count): .suffix(count)
        }
    }
}

extension Generation {
    /// As far as answers about it are judged by it.
    var known: KnownVersion {
        let head = head
        return KnownVersion(
            fields: head.fields, length: length, condition: head.rangeCondition, isPublic: head.isPublic)
    }
}

extension HeaderFields {
    /// What concerns the connection to the origin only, what this proxy says itself, and lines that are no proper
    /// fields.
    package mutating func removeUnfitForClients() {
        removeHopByHop()
        remove(allOf: Self.ofTheProxy)
        removeMalformed()
    }

    private static let ofTheProxy: FieldNames = ["content-length", "age", "cache-status", "set-cookie"]
}
