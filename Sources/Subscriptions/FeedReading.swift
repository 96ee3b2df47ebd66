import CachePolicy
import Playlists

/// One check of a feed: which URLs to request, one after the other, and what the answers mean together. A value.
///
/// The feed comes first. If it says that it has moved, the new URL is tried, and counts if there is a feed. If more
/// episodes are wanted than it lists, its further pages follow (RFC 5005), up to a limit.
struct FeedReading {
    /// Pages besides the first.
    static let mostPages = 20
    /// Times that a feed may say that it has moved.
    static let mostMoves = 5

    enum Step {
        case request(FeedRequest)
        case end(Outcome)
    }

    enum Outcome {
        case unchanged
        case read(Finding)
        case failed(FeedFailure)
    }

    /// What a feed contains by now.
    struct Finding {
        /// Those of further pages last.
        var items: [FeedItem]
        var title: String?
        var skipped: Int
        /// What the feed wants between two checks, in seconds; nil if it does not say.
        var lifetime: Int64?
        /// Where it is fetched from now on.
        var address: OriginURL
        var validators: FeedValidators
    }

    private enum Phase {
        case first
        /// A feed says that it is elsewhere; until that has answered, it counts itself.
        case moving(Feed, Finding)
        case pages(Finding)
    }

    private let wanted: Int
    private let pattern: TitlePattern?
    private var phase = Phase.first
    private var request: FeedRequest
    private var addresses: Set<OriginURL>
    private var pages: Set<OriginURL> = []
    private var (moveCount, pageCount) = (0, 0)

    /// - Parameters:
    ///   - wanted: how many episodes to look for on further pages.
    ///   - pattern: which episodes count for that.
    init(_ request: FeedRequest, wanted: Int, pattern: TitlePattern?) {
        (self.request, self.wanted, self.pattern) = (request, wanted, pattern)
        addresses = [request.url]
    }

    /// The first request.
    var first: FeedRequest { request }

    /// Takes the answer to the last request.
    mutating func take(_ answer: FeedAnswer) -> Step {
        switch (phase, answer) {
        case (.first, .notModified):
            guard request.validators == FeedValidators() else { return .end(.unchanged) }
            return .end(.failed(FeedFailure("the origin answered 304 to a request that sets no conditions")))
        case (.first, .failed(let failure)): return .end(.failed(failure))
        case (.first, .document(let document)):
            do throws(FeedFailure) { return try take(Self.read(document), document) } catch {
                return .end(.failed(error))
            }
        case (.moving(let feed, let finding), .document(let document)):
            guard let moved = try? Self.read(document) else { return next(after: feed, finding) }
            return take(moved, document)
        case (.moving(let feed, let finding), _): return next(after: feed, finding)
        case (.pages(let finding), .document(let document)):
            guard let page = try? Self.read(document) else { return .end(.read(finding)) }
            return next(after: page, finding.appending(page))
        case (.pages(let finding), _): return .end(.read(finding))
        }
    }

    private static func read(_ document: FeedDocument) throws(FeedFailure) -> Feed {
        do throws(FeedError) {
            return try Feed(reading: document.bytes, at: document.url, type: document.type)
        } catch { throw FeedFailure(error.description) }
    }

    private mutating func take(_ feed: Feed, _ document: FeedDocument) -> Step {
        let address = document.hasMoved ? document.url : request.url
        addresses.formUnion([address, document.url])
        let finding = Finding(feed, address: address, validators: document.validators)
        guard let newAddress = feed.newAddress, addresses.insert(newAddress).inserted, moveCount < Self.mostMoves
        else { return next(after: feed, finding) }
        moveCount += 1
        phase = .moving(feed, finding)
        return send(newAddress)
    }

    /// Requests the page after this one, if more episodes are wanted.
    private mutating func next(after feed: Feed, _ finding: Finding) -> Step {
        let matching = pattern.map { pattern in finding.items.count { pattern.matches($0.title) } }
        pages.formUnion([feed.url, finding.address])
        guard matching ?? finding.items.count < wanted, finding.items.count < FeedLimits.items,
            pageCount < Self.mostPages, let page = feed.previousArchive ?? feed.nextPage,
            pages.insert(page).inserted
        else { return .end(.read(finding)) }
        pageCount += 1
        phase = .pages(finding)
        return send(page)
    }

    private mutating func send(_ url: OriginURL) -> Step {
        request = FeedRequest(url: url, validators: FeedValidators())
        return .request(request)
    }
}

extension FeedReading.Finding {
    fileprivate init(_ feed: Feed, address: OriginURL, validators: FeedValidators) {
        (items, title, skipped) = (feed.items, feed.title, feed.skipped.count)
        lifetime = feed.lifetime?.components.seconds
        (self.address, self.validators) = (address, validators)
    }

    /// With the items of a further page that are not there yet.
    fileprivate func appending(_ page: Feed) -> Self {
        var (finding, known) = (self, Set(items.map(\.identity)))
        finding.items += page.items.filter { known.insert($0.identity).inserted }.prefix(
            max(0, FeedLimits.items - items.count))
        finding.skipped += page.skipped.count
        return finding
    }
}
