import CacheFill
import CachePolicy
import DiskCache
import HTTPModel
import HTTPTransport

/// Answers with several ranges (RFC 9110 §14.2, §15.3.7.2).
extension MediaAnswer {
    /// Answers several ranges from a stored generation. A response that is passed through has only the range that
    /// was requested from the origin, which is a valid answer too (§15.3.7).
    func answerSeveral(
        from generation: Generation, _ view: Generation.Snapshot, length: Int64, following status: SharedFetch?
    ) {
        switch RangeSet(several, length: length) {
        case .unsatisfiable:
            refuseRange(length, generation, following: status)
        case .parts(let ranges) where ranges.count == 1:
            answer(from: generation, view, range: ranges[0], length: length, following: status)
        case .parts(let ranges)
        where view.head.rangeCondition != nil || coverage(of: ranges, in: generation) == .whole:
            answer(from: generation, view, ranges, length: length, following: status)
        // Without a validator, the absent bytes arrive in one transfer, in the order of the whole.
        case .parts, .whole:
            answer(from: generation, view, range: nil, length: length, following: status)
        }
    }

    private func answer(
        from generation: Generation, _ view: Generation.Snapshot, _ ranges: [Range<Int64>], length: Int64,
        following status: SharedFetch?
    ) {
        let coverage = coverage(of: ranges, in: generation)
        classify(coverage, generation, isOpening: status != nil)
        if directives.control.onlyIfCached, coverage != .whole {
            status?.leave(follower)
            return refuseRequest()
        }
        let layout = MultipartLayout(ranges, total: length, type: view.head.fields["Content-Type"])
        let reader = CacheReader(
            generation, from: ranges[0].lowerBound, to: ranges[0].upperBound, resource: resource,
            host: route.url.host, demand: self.demand,
            filler: filler, follower: follower,
            following: status)
        self.reader = reader
        if resolvedRule.fill.readsOn { filler.keepFilling(resource, generation, demand, from: reader.offset) }
        let body = { [self] step in
            MultipartBody(layout, exchange, first: reader, step) { [resource, route, demand, filler] in
                CacheReader(
                    generation, from: $0.lowerBound, to: $0.upperBound, resource: resource, host: route.url.host,
                    demand: demand, filler: filler)
            } onNext: { [self] in
                proceed(with: $0)
            }
        }
        sendFirst(of: reader, body: body) { [self] in
            // Each part states its own type and range.
            var response = contentHead(
                of: generation, view, range: nil, length: layout.length, without: ["content-type"])
            response.status = 206
            response.field("Content-Type", layout.contentType)
            return response
        }
    }

    private func coverage(of ranges: [Range<Int64>], in generation: Generation) -> Generation.Coverage {
        let coverages = ranges.map { generation.coverage(of: $0) }
        return coverages.allSatisfy { $0 == coverages[0] } ? coverages[0] : .part
    }
}
