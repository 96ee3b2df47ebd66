import CachePolicy
import DiskCache
import Downloads
import EventIO
import HTTPModel
import HTTPTransport

extension ControlHandler {
    private static let mostGenerations = 256
    /// Of the body with which a client asks what is wanted: one long head at least.
    private static let longestHeads = 2 << 20

    /// Sends the cache as an archive, or some generations of it.
    func exportArchive(_ exchange: Exchange, _ parameters: ControlParameters) throws(ControlError) {
        let generations = try Self.generations(parameters), isTold = archiveFilter(for: exchange)
        perform(exchange, isLong: true) { store in
            try store.exportArchive(of: generations, isTold: isTold)
        } then: { [store] exchange, export in
            var response = Response(200, length: nil)
            response.field("Content-Type", "application/octet-stream")
            response.field("Cache-Control", "no-store")
            // A server that shuts down does not wait for it: the client continues later.
            response.isEndless = true
            exchange.respond(response, body: PieceSource(exchange, store) { try export.next() })
        }
    }

    /// Lists what `exportArchive` would send, a resource on each line, and a line with sums.
    func listArchive(_ exchange: Exchange, _ parameters: ControlParameters) throws(ControlError) {
        let generations = try Self.generations(parameters), isTold = archiveFilter(for: exchange)
        perform(exchange, isLong: true) { store in
            try store.listArchive(of: generations, isTold: isTold)
        } then: { [store] exchange, list in
            var response = Response(200, length: nil)
            response.describeJSON()
            response.isEndless = true
            exchange.respond(response, body: PieceSource(exchange, store) { try list.next() })
        }
    }

    /// Without the right to see secrets, resources whose heads have secrets are left out.
    private func archiveFilter(for exchange: Exchange) -> @Sendable ([UInt8]) -> Bool {
        guard !access.permitsChanges(exchange.request) else { return { _ in true } }
        let mask = policy.value.mask
        return { line in mask.masked(line) == line }
    }

    private static func generations(_ parameters: ControlParameters) throws(ControlError) -> [String]? {
        guard let text = parameters["generations"] else { return nil }
        let names = text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
        guard names.count <= mostGenerations,
            names.allSatisfy({ ArchiveSelection($0) != nil })
        else {
            throw ControlError(
                400,
                "generations are up to \(mostGenerations) names from /api/v1/archive/list, separated by commas, not \(text.prefix(100))"
            )
        }
        return names
    }

    /// Tells which resources of another cache's list would be imported.
    func reportWanted(_ exchange: Exchange, _ parameters: ControlParameters) throws(ControlError) {
        let options = archiveOptions(), claimed = try parameters.number("beside", in: 0...Int.max) ?? 0
        exchange.readBody(upTo: Self.longestHeads) { [self] result in
            switch result {
            case .failure(.disconnected): break
            case .failure(.refused(let fault)): exchange.respond(ControlError(fault.status, fault.reason))
            case .success(let body):
                answer(exchange) { store in
                    let heads = try body.split(separator: ASCII.lineFeed).map { line in
                        guard let head = try? ArchiveHead(line: line) else {
                            throw ControlError(400, "send lines of /api/v1/archive/list")
                        }
                        return head
                    }
                    return WantedGenerations(try store.wanted(heads, beside: Int64(claimed), options))
                }
            }
        }
    }

    /// Imports an archive from the body.
    func importArchive(_ exchange: Exchange, _ parameters: ControlParameters) throws(ControlError) {
        var options = archiveOptions()
        (options.keepsPins, options.keepsParts) = (try parameters.flag("pins"), try parameters.flag("parts"))
        guard exchange.bodyLength != 0 else { throw ControlError(422, "the body is empty: send an archive") }
        let intake = store.importArchive(options), mask = mask(for: exchange)
        let answer = ImportAnswer(exchange, intake, store, mask, status: 200, isLong: true) { error in
            var refusal = ControlError(error)
            if let mask { refusal = ControlError(refusal.status, mask.masked(refusal.reason), refusal.advice) }
            refusal.archive = intake.report
            return refusal
        }
        answer.start()
    }

    private func archiveOptions() -> ArchiveOptions {
        ArchiveOptions { [downloads, policy] key in downloads.isDownloading(key, policy.value) }
    }
}

extension DownloadManager {
    /// Whether a download of a resource, or of a variant of it, has not ended.
    nonisolated package func isDownloading(_ key: CacheKey, _ policy: ProxyPolicy) -> Bool {
        guard let url = try? OriginURL(url: String(key.text.prefix { $0 != " " })) else { return false }
        return snapshots.unfinished(of: url, under: policy) != nil
    }
}

/// Which resources of another cache's list would be imported.
package struct WantedGenerations: Codable, Sendable {
    package let generations: [String]
    /// The first byte that is lacking of those that are cached in part, by generation.
    package let starts: [String: Int64]
    /// The room that these take in the cache.
    package let bytes: Int64
    /// For how many more there is no room.
    package let noRoom: Int

    package init(_ wanted: WantedHeads) {
        (generations, starts) = (wanted.heads.map(\.generation), wanted.starts)
        (bytes, noRoom) = (wanted.bytes, wanted.noRoom)
    }
}

extension ArchiveImport: BodyIntake {}
