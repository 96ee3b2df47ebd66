import CachePolicy
import DiskCache
import HTTPModel
import Upstream

/// What an origin's first answer says about a resource: the range that arrives, whether it is stored, and its head.
struct OpeningAnswer {
    let first: FirstAnswer
    let storing: Storing
    let head: GenerationHead

    /// - Parameters:
    ///   - span: the requested part; nil for the whole.
    ///   - times: the times from which its age counts.
    ///   - setsCookies: as in `Storing`.
    ///   - isMedia: whether its first bytes are those of media, whatever its label says.
    ///   - fileName: what a file of it is called unless the origin has a name; nil if unknown.
    init(
        _ answer: UpstreamHead, requested span: UpstreamRequest.Span?, _ demand: Demand, times: ResponseTimes,
        fileName: String?, setsCookies: Bool = false, isMedia: Bool = false, _ store: CacheStore
    ) throws(FillError) {
        do {
            first = try FirstAnswer(answer.answer, requested: span?.spec, longest: ChunkGeometry.longestBody)
        } catch {
            switch error {
            case .unusable(let why): throw .unusable(why)
            }
        }
        storing = Storing.decide(
            status: answer.status, fields: answer.fields, total: first.total,
            demand.storing(setsCookies: setsCookies), expectsMedia: demand.expectsMedia && !isMedia,
            isUnreadable: ContentEncoding.isUnreadableListing(answer.fields, at: demand.url),
            demand.resolvedRule)
        let terms = demand.resolvedRule.terms
        var fields = answer.keptFields(receivedAt: times.validatedAt)
        if let fileName, fields["Content-Disposition"] == nil {
            fields.append("Content-Disposition", ContentDisposition.inline(fileName: fileName))
        }
        // Another part of the resource has the status of the whole.
        head = GenerationHead(
            status: first.isPart ? 200 : answer.status,
            fields: storing == .store ? fields.storable(under: terms).worthKeeping : fields,
            variant: Variant(
                response: answer.fields, request: demand.sentFields, terms, fingerprint: store.fingerprint),
            finalURL: answer.finalURL,
            isPublic: answer.isFromPublicAddress, storedAt: times.validatedAt, times: times)
    }
}

extension UpstreamHead {
    /// What the answer says about the bytes and the version that come.
    var answer: OriginAnswer {
        OriginAnswer(
            status: status, fields: fields, contentLength: contentLength, contentRange: contentRange,
            scope: scope)
    }

    /// Whether this is a web page in place of stored media; in place of what is kept, also another text or nothing.
    package func replacesMedia(_ stored: HeaderFields, isKept: Bool, _ demand: Demand) -> Bool {
        guard status == 200 || status == 206, !demand.resolvedRule.storesPages else { return false }
        if isKept, StrayPage.isFilm(stored), contentLength == 0 || StrayPage.isText(fields) { return true }
        guard StrayPage.isPage(fields), !StrayPage.isPage(stored) else { return false }
        return demand.expectsMedia || StrayPage.isMedia(stored)
    }

    /// The fields to keep: without hop-by-hop fields, and without those that this proxy sets itself.
    /// - Parameter receivedAt: seconds since 1970; replaces a missing `Date` (RFC 9110 §6.6.1).
    func keptFields(receivedAt: Int64) -> HeaderFields {
        var fields = self.fields
        fields.removeUnstored()
        if status == 416, let contentRange, contentRange.range == nil {
            fields.append("Content-Range", contentRange.fieldValue)
        }
        if fields["Date"].flatMap(HTTPDate.parse) == nil { fields.replace("Date", HTTPDate.format(receivedAt)) }
        return fields
    }
}

extension UpstreamRequest.Span {
    /// The span as a request's `Range` states it.
    var spec: ByteRangeSpec {
        switch self {
        case .bounded(let range): .bounded(first: range.lowerBound, last: range.upperBound -| 1)
        case .from(let first): .from(first)
        case .suffix(let count): .suffix(count)
        }
    }
}

extension Generation {
    /// What answers about this generation are compared with.
    var known: KnownVersion {
        let head = head
        return KnownVersion(
            fields: head.fields, length: length, condition: head.rangeCondition, isPublic: head.isPublic)
    }
}
