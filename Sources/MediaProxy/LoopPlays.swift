import Activity
import CacheFill
import CachePolicy
import EventIO
import HTTPModel
import HTTPTransport
import Presentations

/// What players read through one loop. Loop-bound.
///
/// A request costs one look-up here when it begins; everything else is read from the running answers when somebody
/// looks. A play that is over stays for a while: most players reconnect when they seek, and those of streams request
/// one segment after the other. It does not if none of its requests succeeded: nothing was played.
package final class LoopPlays {
    private let shelf: PlaylistShelf
    private var plays: [PlaySample.Key: LoopPlay] = [:]
    /// The play of the last request: the next one is often of the same.
    private var last: LoopPlay?
    /// The `User-Agent` of the last play that began, which that of the next one often has, and whether it is a
    /// downloader's.
    private var lastAgent: (text: String?, isDownload: Bool)?

    /// Beyond this many, plays without a request are forgotten, those that ended first.
    private var limit = mostKept

    private static let mostKept = 256

    package init(_ shelf: PlaylistShelf) { self.shelf = shelf }

    /// Adds a request to its play.
    func begin(_ answer: MediaAnswer) {
        let request = answer.request
        let play = known(to: request) ?? play(of: request)
        last = play
        play.begin(answer, shelf)
        request.isOfDownloader = play.isDownload
        request.exchange.follow(by: play)
    }

    /// The play that a request continues, if it is the last one of its route, or that of the last request for the same
    /// presentation: found without looking for its key.
    private func known(to request: MediaRequest) -> LoopPlay? {
        let known = request.membership == nil ? request.route.play as? LoopPlay : last
        guard let known, known.reading === request.reading,
            request.membership.map({ $0.whole == known.key.whole }) != false,
            !isOver(known, at: request.exchange.startedAt)
        else { return nil }
        return known
    }

    private func play(of request: MediaRequest) -> LoopPlay {
        let route = request.route, now = request.exchange.startedAt
        let key = PlaySample.Key(player: request.reading.player, whole: request.membership?.whole ?? route.key)
        let play = plays[key].flatMap { isOver($0, at: now) ? nil : $0 } ?? begin(key, request.reading, at: now)
        play.reading = request.reading
        if request.membership == nil { route.play = play }
        return play
    }

    private func begin(_ key: PlaySample.Key, _ reading: FieldReading, at now: UInt64) -> LoopPlay {
        forgetSurplus(at: now)
        if lastAgent == nil || lastAgent?.text != key.player.agent {
            lastAgent = (key.player.agent, PlayerName(userAgent: key.player.agent).isDownloadClient)
        }
        let play = LoopPlay(key, reading, isDownload: lastAgent?.isDownload ?? false, began: now)
        plays.updateValue(play, forKey: key)?.reading = nil
        return play
    }

    /// Whether it ended so long ago, or without any success, that the player's next request begins another.
    private func isOver(_ play: LoopPlay, at now: UInt64) -> Bool {
        play.isIdle && (!play.hasSucceeded || now -| play.lastUse > Self.longestIdle)
    }

    private func forgetSurplus(at now: UInt64) {
        guard plays.count >= limit else { return }
        forgetEnded(at: now)
        guard plays.count >= limit else { return }
        let idle = plays.values.filter(\.isIdle).sorted { $0.lastUse < $1.lastUse }
        for play in idle.prefix(max(1, idle.count / 2)) { forget(play) }
    }

    private func forgetEnded(at now: UInt64) {
        for play in plays.values.filter({ isOver($0, at: now) }) { forget(play) }
        // While most of them are running, looking again soon would find nothing.
        limit = max(Self.mostKept, plays.values.count { !$0.isIdle } * 2)
    }

    private func forget(_ play: LoopPlay) {
        play.reading = nil
        plays[play.key] = nil
    }

    /// Adds the plays at this moment; if there are very many, those that began first. Forgets those that ended long
    /// ago.
    package func addSamples(to samples: inout ActivitySamples) {
        forgetEnded(at: MonotonicClock.nanoseconds())
        let most = ActivitySamples.mostOfALoop
        let shown =
            plays.count > most ? Array(plays.values.sorted { $0.began < $1.began }.prefix(most)) : Array(plays.values)
        samples.plays += shown.map { $0.sample(shelf) }
        samples.hiddenPlays +|= plays.count - shown.count
    }

    private static let longestIdle = UInt64(ActivityBook.idlePresentationSeconds * 1e9) // no trap: a constant
}

/// What one player reads of one thing through one loop. Loop-bound.
final class LoopPlay: ExchangeFollower {
    let key: PlaySample.Key
    /// Of its last request; another request with the same one is of the same player. Nil once the play is kept no
    /// more: what continues is another. Its route may hold it for long.
    var reading: FieldReading?
    let began: UInt64
    /// Whether its player fetches files to be played later.
    let isDownload: Bool
    /// Monotonic, in nanoseconds.
    private(set) var lastUse: UInt64
    /// The answers that are being sent, the latest last. Changed and searched outside of this object: otherwise each
    /// access would be checked for another at the same time.
    private var answers: [MediaAnswer] = []
    /// Not their `SegmentPlace`, which would keep a whole playlist in memory.
    private var segments: [(rendition: RenditionID, shown: PlaySample.Segment)] = []
    /// Whether the status of any answer was below 400.
    private(set) var hasSucceeded = false
    // Of the answers that are over
    private var fromCache: Int64 = 0
    private var fromOrigin: Int64 = 0
    private var end: (offset: Int64, length: Int64?)?
    private var fileName: String?

    /// Video, audio, subtitles, and the rendition before a switch.
    private static let mostSegments = 4

    init(_ key: PlaySample.Key, _ reading: FieldReading, isDownload: Bool, began: UInt64) {
        (self.key, self.reading, self.isDownload, self.began, lastUse) = (key, reading, isDownload, began, began)
    }

    var isIdle: Bool { answers.isEmpty }

    func begin(_ answer: MediaAnswer, _ shelf: PlaylistShelf) {
        lastUse = answer.request.exchange.startedAt
        change { $0.append(answer) }
        guard let place = answer.request.membership?.place else { return }
        if let known = segments.firstIndex(where: { $0.rendition == place.rendition }) {
            if known < segments.count - 1 { segments.append(segments.remove(at: known)) }
        } else {
            let name = shelf.name(of: place.rendition) ?? "media"
            segments.append((place.rendition, PlaySample.Segment(rendition: name)))
            if segments.count > Self.mostSegments { segments.removeFirst() }
        }
        segments[segments.count - 1].shown.note(place.position, of: place.segments.count, at: lastUse)
    }

    func ended(_ exchange: Exchange) {
        lastUse = MonotonicClock.nanoseconds()
        var ended: MediaAnswer?
        change { answers in
            guard let index = answers.firstIndex(where: { $0.request.exchange === exchange }) else { return }
            ended = answers.remove(at: index)
        }
        guard let answer = ended else { return }
        // The text of an error is not media.
        let answered = exchange.answered
        guard let status = answered.status, status < 400 else { return }
        hasSucceeded = true
        fromCache +|= answered.fromCache
        fromOrigin +|= answered.fromOrigin
        if let last = answer.content?.lastReading { end = last }
    }

    private func change(_ body: (inout [MediaAnswer]) -> Void) {
        var changed: [MediaAnswer] = []
        swap(&changed, &answers)
        body(&changed)
        answers = changed
    }

    func sample(_ shelf: PlaylistShelf) -> PlaySample {
        let answers = answers
        var sample = PlaySample(key, url: key.whole.text, began: began, lastUse: lastUse)
        sample.isPresentation = !segments.isEmpty || shelf.document(key.whole) != nil
        sample.requests = answers.count
        sample.isStarved = !answers.isEmpty && answers.allSatisfy(\.isStarved)
        let running = answers.reversed().compactMap { $0.content?.reading }
        sample.offsets = running.isEmpty ? [end?.offset].compactMap(\.self) : running.map(\.offset)
        sample.length = running.first?.length ?? end?.length
        sample.segments = segments.map(\.shown)
        let bytes = answers.map { $0.request.exchange.bytesSent(and: $0.content?.reader) }
        sample.fromCache = bytes.reduce(fromCache) { $0 +| $1.cached }
        sample.fromOrigin = bytes.reduce(fromOrigin) { $0 +| $1.fetched }
        if fileName == nil { fileName = answers.lazy.compactMap { $0.content?.fileName }.first }
        sample.title = shelf.title(of: key.whole) ?? (sample.isPresentation ? nil : fileName)
        return sample
    }
}

extension Exchange {
    /// The bytes of the body given to the connection, those of a reader that is not counted yet included, by where they
    /// came from.
    fileprivate func bytesSent(and reader: CacheReader?) -> (cached: Int64, fetched: Int64) {
        let answered = answered, account = reader?.account
        return (answered.fromCache +| (account?.stored ?? 0), answered.fromOrigin +| (account?.fetched ?? 0))
    }
}
