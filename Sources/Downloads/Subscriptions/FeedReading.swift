import CachePolicy
import HTTPModel
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
        /// - Parameter movedTo: where the feed is fetched from now on; nil if that is the same as before.
        case unchanged(movedTo: OriginURL?)
        case read(Finding)
        case failed(FeedFailure)
    }

    /// What a feed contains by now.
    struct Finding {
        /// Those of further pages last.
        var items: [FeedItem]
        /// How many of them are on the first page.
        let firstPage: Int
        var title: String?
        /// The first of them.
        var skipped: [SkippedItem]
        /// The number of all.
        var skippedCount: Int
        /// What the feed wants between two checks, in seconds; nil if it does not say.
        var lifetime: Int64?
        /// Where it is fetched from now on.
        var address: OriginURL
        /// Empty if the next check is to read the feed again, changed or not.
        var validators: FeedValidators
        /// What could not be read.
        var gap: Gap?
    }

    /// A part of a feed that could not be read.
    enum Gap: Equatable {
        /// The feed says that it has moved to an address that does not work yet.
        case move(OriginURL, reason: String)
        /// Its text ends early, or cannot be read to its end.
        case text(reason: String)
        /// An older page, and all that follow it.
        case page(OriginURL, reason: String)
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
        case (.first, .notModified(let address)):
            guard request.validators == FeedValidators() else { return .end(.unchanged(movedTo: address)) }
            return .end(.failed(FeedFailure("the origin answered 304 to a request that sets no conditions")))
        case (.first, .failed(let failure)): return .end(.failed(failure))
        case (.first, .document(let document)):
            do throws(FeedFailure) { return try take(Self.read(document), document) } catch {
                return .end(.failed(error))
            }
        case (.moving(let feed, var finding), let answer):
            switch Self.further(answer) {
            case .success((let moved, let document)): return take(moved, document)
            case .failure(let failure):
                // Otherwise the feed would never be read again where it is: its text, which names the address, does not
                // change any more.
                finding.validators = FeedValidators()
                finding.gap = finding.gap ?? .move(request.url, reason: failure.message)
                return next(after: feed, finding)
            }
        case (.pages(var finding), let answer):
            switch Self.further(answer) {
            case .success((let page, _)): return next(after: page, finding.appending(page))
            case .failure(let failure):
                finding.gap = finding.gap ?? .page(request.url, reason: failure.message)
                return .end(.read(finding))
            }
        }
    }

    /// What follows the first answer, which is always requested without conditions.
    private static func further(_ answer: FeedAnswer) -> Result<(Feed, FeedDocument), FeedFailure> {
        switch answer {
        case .document(let document): Result { () throws(FeedFailure) in (try read(document), document) }
        case .notModified: .failure(FeedFailure("the origin answered 304 to a request that sets no conditions"))
        case .failed(let failure): .failure(failure)
        }
    }

    private static func read(_ document: FeedDocument) throws(FeedFailure) -> Feed {
        do throws(FeedError) { return try document.feed.get() } catch { throw FeedFailure(error.description) }
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

extension FeedReading.Gap {
    /// One line.
    var message: String {
        switch self {
        case .move(let url, let reason): "it says that it has moved to \(url.absolute), which cannot be read: \(reason)"
        case .text(let reason): reason
        case .page(let url, let reason): "its older page \(url.absolute) cannot be read: \(reason)"
        }
    }

    /// Whether more episodes may be found by reading the feed once more where it is.
    var hidesEpisodes: Bool { if case .move = self { false } else { true } }

    /// Whether the end of a text is missing.
    var isInText: Bool { if case .text = self { true } else { false } }
}

extension FeedReading.Finding {
    /// The most skipped items of which more is remembered than their number.
    private static let mostSkipped = 20

    /// The first skipped items, each with the reason in one line.
    var skippedLines: [String] {
        skipped.map { "\($0.name.printable(upTo: 100)): \($0.reason)" }
    }

    fileprivate init(_ feed: Feed, address: OriginURL, validators: FeedValidators) {
        (items, firstPage, title) = (feed.items, feed.items.count, feed.title)
        (skipped, skippedCount) = (Array(feed.skipped.prefix(Self.mostSkipped)), feed.skipped.count)
        gap = Self.gap(feed)
        lifetime = feed.lifetime?.components.seconds
        (self.address, self.validators) = (address, validators)
    }

    /// With the items of a further page that are not there yet.
    fileprivate func appending(_ page: Feed) -> Self {
        var (finding, known) = (self, Set(items.map(\.identity)))
        finding.items += page.items.filter { known.insert($0.identity).inserted }.prefix(
            max(0, FeedLimits.items - items.count))
        finding.skipped += page.skipped.prefix(Self.mostSkipped - skipped.count)
        finding.skippedCount += page.skipped.count
        finding.gap = finding.gap ?? Self.gap(page)
        return finding
    }

    /// Too many items are no gap: another reading would find no more.
    private static func gap(_ feed: Feed) -> FeedReading.Gap? {
        switch feed.cut {
        case .endsEarly: .text(reason: "the text of the feed ends early")
        case .malformed: .text(reason: "the text of the feed cannot be read to its end")
        case .tooManyItems, nil: nil
        }
    }
}
