import CCurl
import CachePolicy
import EventIO
import Glibc
import HTTPModel

/// One request on its way to an origin, and its response on the way back. Loop-bound; made by `UpstreamClient.start`.
///
/// A *hop* is one exchange with one server; a redirect starts the next. To whoever waits there is only the last one.
package final class Transfer {
    /// How far this transfer is.
    enum Stage {
        /// Started inside one of curl's callbacks, where no handle can be added.
        case waiting
        /// As many transfers run as may.
        case queued
        /// The host's name is being looked up.
        case resolving
        case head
        case body
        /// The head was a redirect; what comes now is discarded.
        case redirect
        /// Finished or cancelled: the delegate hears no more.
        case ended
    }

    /// What is known of one exchange.
    struct Hop {
        var collector = HeadCollector()
        /// Bytes of a redirect's body.
        var discarded = 0
        /// An address that the policy does not permit.
        var refused: String?
        /// No socket could be made, as too many files are open.
        var lacksDescriptors = false
        /// Why a callback made curl give up.
        var fault: UpstreamError?
        /// Made for it. None where a connection is used again.
        var sockets: [Int32] = []
        /// Of the connection that the request goes over.
        var ends: OriginSockets.Ends?
        /// There was something to read on that connection before the request was sent.
        var foundSurplus = false
    }

    /// Bytes of a redirect's body that are read to keep its connection; beyond that a new one is cheaper.
    static let discardLimit = 64 * 1024
    /// How many times `stallTimeout` one that is played waits for its turn.
    private static let stallsInQueue = 4.0

    /// Held until the end.
    package var delegate: (any TransferDelegate)?
    /// Bytes that the delegate has taken.
    package internal(set) var bodyBytesReceived: Int64 = 0
    /// Asked to hold the body back. The head comes all the same, and so does the end where no byte is left.
    package internal(set) var isPaused = false {
        didSet { parkOrGoOn() }
    }

    let request: UpstreamRequest
    var client: UpstreamClient?
    var stage = Stage.waiting
    var isPausedInCurl = false
    private var isResuming = false
    /// The delegate has nothing to send yet, which is no stall of the origin's.
    var isUploadPaused = false
    private var isUploadResuming = false
    /// The answer is there before the request is, and is none that waits for the rest of it.
    var isRefused = false
    private var uploadTimer: LoopTimer?

    /// Seconds between two looks whether an answer has ended, while the upload waits.
    private static let lookInterval = 0.05

    /// The right to run (`TransferSlots`).
    private enum Slot {
        case none
        case waiting(TransferSlots.Ticket)
        /// For a host.
        case held(String)
        case parked(String)
    }

    // This hop
    private var slot = Slot.none
    private var lookUp: NameResolver.Ticket?
    /// Tells what comes for a hop that is over.
    private var hopNumber = 0
    var easy: EasyHandle?
    var url: UpstreamURL?
    private var fields: HeaderFields
    var hop = Hop()
    var location = ""
    /// The next hop, or this one again, is to have a connection of its own.
    private var needsNewConnection = false

    private var redirects = 0
    private var priority: UpstreamRequest.Priority
    /// Whether each address that was asked is public, and none of this machine's networks.
    var isPublic = true
    private var startOfHop: UInt64 = 0
    var lastSign: UInt64 = 0
    private var stallTimer: LoopTimer?

    init(_ request: UpstreamRequest, client: UpstreamClient, delegate: any TransferDelegate) {
        self.request = request
        url = UpstreamURL(request.url)
        self.client = client
        self.delegate = delegate
        fields = request.fields
        priority = request.priority
    }

    // MARK: What the owner asks for

    /// Holds the body back. The bytes that were under way come after `resume`.
    package func pause() {
        guard stage != .ended, !isPaused, let client else { return }
        isPaused = true
        client.settle(self)
    }

    /// Lets the body come again, once the callback that is running now has returned.
    package func resume() {
        guard stage != .ended, isPaused, let client else { return }
        isPaused = false
        noteSign()
        guard !isResuming else { return }
        isResuming = true
        client.loop.afterCallback { self.resumeNow() }
    }

    /// The delegate, which has answered `wait`, has something to send now.
    package func resumeUpload() {
        guard stage != .ended, isUploadPaused, !isUploadResuming, let client else { return }
        isUploadResuming = true
        client.loop.afterCallback { self.resumeUploadNow() }
    }

    /// Somebody plays what was asked for by downloads alone: where it waits for its turn, it does so among those who
    /// play.
    package func hurry() {
        guard priority == .download else { return }
        priority = .playback
        guard stage == .queued, client != nil else { return }
        leaveHop()
        beginHop()
    }

    /// Ends the transfer without a further word to the delegate. Idempotent; also from inside a delegate's call.
    package func cancel() {
        guard stage != .ended, let client else { return }
        stage = .ended
        delegate = nil
        client.settle(self)
    }

    // MARK: Outside of curl

    /// Does what could not be done while one of curl's callbacks was running. Not to be called inside of one.
    func settle() {
        switch stage {
        case .waiting: beginHop()
        case .ended: detach()
        case .body where isPaused && !isPausedInCurl:
            guard let easy else { return }
            isPausedInCurl =
                curl_easy_pause(easy.curl, CURLPAUSE_RECV | (isUploadPaused ? CURLPAUSE_SEND : 0)) == CURLE_OK
        case .queued, .resolving, .head, .body, .redirect: break
        }
    }

    private func resumeNow() {
        isResuming = false
        guard stage != .ended, !isPaused, let easy, let client else { return }
        stallTimer?.schedule(afterSeconds: client.settings.stallTimeout)
        guard isPausedInCurl else { return }
        isPausedInCurl = false
        applyPauses(easy, client)
    }

    private func resumeUploadNow() {
        isUploadResuming = false
        guard stage != .ended, isUploadPaused, let easy, let client else { return }
        isUploadPaused = false
        noteSign()
        stallTimer?.schedule(afterSeconds: client.settings.stallTimeout)
        applyPauses(easy, client)
    }

    /// While an upload is paused, curl does not end, not even where it would send no more as the answer is complete: so
    /// it is let go on from time to time.
    private func lookWhetherAnswered() {
        guard stage == .body, isUploadPaused, let easy, let client else { return }
        isUploadPaused = false
        applyPauses(easy, client)
    }

    func lookLaterWhetherAnswered() {
        guard stage == .body, let client else { return }
        if uploadTimer == nil {
            uploadTimer = LoopTimer(on: client.loop) { [unowned self] in self.lookWhetherAnswered() }
        }
        uploadTimer?.schedule(afterSeconds: Self.lookInterval)
    }

    /// Tells curl which directions are paused. It delivers at once what it has kept.
    private func applyPauses(_ easy: EasyHandle, _ client: UpstreamClient) {
        let paused =
            (isPausedInCurl ? CURLPAUSE_RECV : CURLPAUSE_CONT) | (isUploadPaused ? CURLPAUSE_SEND : CURLPAUSE_CONT)
        var code = CURLE_OK
        client.callCurl { code = curl_easy_pause(easy.curl, paused) }
        guard code != CURLE_OK, stage != .ended else { return }
        finish(with: error(for: code))
    }

    /// Waits for a slot, then for the addresses of the host, and asks.
    private func beginHop() {
        guard let client else { return }
        stage = .queued
        guard let url else {
            // The owner does not have the transfer yet, if this is still its `start`.
            return client.loop.afterCallback { self.finish(with: .badURL(self.request.url)) }
        }
        hop = Hop()
        hopNumber += 1
        startOfHop = MonotonicClock.nanoseconds()
        if stallTimer == nil { stallTimer = LoopTimer(on: client.loop) { [unowned self] in self.checkForStall() } }
        let this = LoopBound(self, on: client.loop), number = hopNumber
        guard let ticket = client.slots.take(url.host, priority, wake: { this.post { $0.slotCame(number) } }) else {
            return slotCame(number)
        }
        slot = .waiting(ticket)
        delegate?.transfer(self, isIn: .queue)
        // Who downloads has time. Who plays keeps its place for long: a player that waits for its first byte gives up
        // sooner by itself.
        if priority == .playback {
            stallTimer?.schedule(afterSeconds: client.settings.stallTimeout * Self.stallsInQueue)
        }
    }

    private func slotCame(_ number: Int) {
        guard stage == .queued, hopNumber == number, let client, let url else { return }
        slot = .held(url.host)
        guard let name = url.name else { return ask([]) }
        stage = .resolving
        startOfHop = MonotonicClock.nanoseconds()
        let this = LoopBound(self, on: client.loop)
        switch client.resolver.resolve(name, waiter: { addresses in this.post { $0.resolved(addresses, number) } }) {
        // The owner does not have the transfer yet, if this is still its `start`.
        case .addresses([]): client.loop.afterCallback { self.resolved([], number) }
        case .addresses(let addresses): ask(addresses)
        case .waiting(let ticket):
            lookUp = ticket
            delegate?.transfer(self, isIn: .names)
            stallTimer?.schedule(afterSeconds: client.settings.connectTimeout)
        }
    }

    /// Whether the name's servers have been asked.
    private var isLookingUp: Bool { lookUp.flatMap { client?.resolver.hasBegun($0) } ?? false }

    private func resolved(_ addresses: [String], _ number: Int) {
        guard stage == .resolving, hopNumber == number else { return }
        lookUp = nil
        guard !addresses.isEmpty else { return finish(with: .cannotResolve(host: host)) }
        ask(addresses)
    }

    private func ask(_ addresses: [String]) {
        guard let client, let url else { return }
        stage = .head
        delegate?.transfer(self, isIn: .response)
        let easy = client.makeHandle()
        self.easy = easy
        easy.setUp(url: url.text, settings: client.settings)
        easy.set(addresses: addresses, of: url)
        easy.set(request, fields: fields, settings: client.settings)
        if needsNewConnection { easy.set(CURLOPT_FRESH_CONNECT, 1) }
        setCallbacks(easy)
        startOfHop = MonotonicClock.nanoseconds()
        lastSign = startOfHop
        stallTimer?.schedule(afterSeconds: client.settings.stallTimeout)
        client.add(easy)
    }

    /// What is paused takes no slot from others.
    private func parkOrGoOn() {
        guard let client else { return }
        switch slot {
        case .held(let host) where isPaused:
            slot = .parked(host)
            client.slots.give(host)
        case .parked(let host) where !isPaused:
            slot = .held(host)
            client.slots.takeAgain(host)
        case .none, .waiting, .held, .parked: break
        }
    }

    /// Curl is done with this hop.
    func hopEnded(_ code: CURLcode) {
        switch stage {
        case .redirect: follow()
        case .head where isSpoiled(code): beginAnew()
        case .head, .body: finish(with: error(for: code))
        case .waiting, .queued, .resolving, .ended: break
        }
    }

    /// What came was the rest of an answer to somebody before, on a connection that was used again, and nothing of our
    /// own.
    private func isSpoiled(_ code: CURLcode) -> Bool {
        guard hop.sockets.isEmpty, request.method.followsRedirects, !needsNewConnection, hop.fault == nil else {
            return false
        }
        if hop.foundSurplus { return true }
        guard !hop.collector.hasBegun, code != CURLE_OK, case .protocolViolation = error(for: code) else {
            return false
        }
        return true
    }

    /// The same request, over a connection of its own.
    private func beginAnew() {
        leaveHop()
        needsNewConnection = true
        beginHop()
    }

    private func follow() {
        guard let client, let url else { return }
        guard redirects < client.settings.maxRedirects else {
            return finish(with: .tooManyRedirects(limit: client.settings.maxRedirects))
        }
        guard let next = url.resolving(location) else { return finish(with: .badRedirect(location: location)) }
        redirects += 1
        if !next.hasSameOrigin(as: url) {
            // RFC 9110 §15.4: what was meant for one origin is not told to another, nor to the first when a redirect
            // leads back.
            for name in HeaderFields.credentials + request.confined { fields.remove(name) }
            if let page = fields["Referer"] { Referrer(redirected: page, to: next.text).replace(in: &fields) }
        }
        leaveHop()
        needsNewConnection = false
        self.url = next
        beginHop()
    }

    private func error(for code: CURLcode) -> UpstreamError? {
        if let fault = hop.fault { return fault }
        // All of the answer is there; what an origin sends as the body of an answer that has none is its connection's
        // end only.
        if stage == .body, code == CURLE_WEIRD_SERVER_REPLY, request.method == .head { return nil }
        guard code != CURLE_OK else {
            return stage == .body ? nil : .broken(detail: "the response ended before its head did")
        }
        if code == CURLE_COULDNT_CONNECT || code == CURLE_ABORTED_BY_CALLBACK, let refused = hop.refused {
            return .addressRefused(host: host, address: refused)
        }
        if code == CURLE_COULDNT_CONNECT, hop.lacksDescriptors { return .outOfDescriptors(host: host) }
        if code == CURLE_URL_MALFORMAT {
            return redirects > 0 ? .badRedirect(location: location) : .badURL(request.url)
        }
        return UpstreamError(code, detail: easy?.detail ?? "", host: host, phase: phase)
    }

    /// Of this hop.
    var host: String { url?.host ?? "" }

    private var phase: UpstreamError.Phase {
        stage == .body ? .body : easy?.isConnected == true ? .response : .connect
    }

    private func finish(with error: UpstreamError?) {
        guard stage != .ended else { return }
        stage = .ended
        let last = delegate
        delegate = nil
        detach()
        last?.transfer(self, finishedWith: error)
    }

    private func detach() {
        guard let client else { return }
        stallTimer?.cancel()
        stallTimer = nil
        uploadTimer?.cancel()
        uploadTimer = nil
        leaveHop()
        client.forget(self)
        self.client = nil
    }

    private func leaveHop() {
        guard let client else { return }
        releaseHandle()
        // In a queue it may wait for as long as the next hop likes.
        stallTimer?.cancel()
        if let lookUp { client.resolver.cancel(lookUp) }
        lookUp = nil
        switch slot {
        case .none, .parked: break
        case .waiting(let ticket): client.slots.leave(ticket)
        case .held(let host): client.slots.give(host)
        }
        slot = .none
    }

    private func releaseHandle() {
        guard let easy, let client else { return }
        self.easy = nil
        isPausedInCurl = false
        if let ends = hop.ends, easy.isHTTP2 { client.originSockets.isHTTP2(ends) }
        client.remove(easy)
    }

    // MARK: Stalls

    // Not curl's low speed limit: it averages over seconds, and so fails a stalled transfer five seconds late.

    func noteSign() {
        lastSign = MonotonicClock.nanoseconds()
    }

    private func checkForStall() {
        if stage == .queued { return finish(with: .timedOut(host: host, phase: .queue)) }
        if stage == .resolving { return finish(with: .timedOut(host: host, phase: isLookingUp ? .connect : .names)) }
        guard stage != .ended, let easy, let client else { return }
        // A paused transfer may be silent for as long as it likes; `resume` sets the timer again.
        if stage == .body && isPaused || isUploadPaused && !isRefused { return }
        let now = MonotonicClock.nanoseconds()
        let connectTime = easy.microsecondsToConnect
        // While it connects, curl's own limit is at work.
        // no trap: microseconds that have passed, above 0
        let since = connectTime > 0 ? max(lastSign, startOfHop + UInt64(connectTime) * 1000) : now
        let silence = since < now ? Double(now - since) / 1e9 : 0 // no trap: compared before
        guard silence >= client.settings.stallTimeout else {
            stallTimer?.schedule(afterSeconds: max(0.001, client.settings.stallTimeout - silence))
            return
        }
        // A redirect's body is of no interest.
        if stage == .redirect { follow() } else { finish(with: .timedOut(host: host, phase: phase)) }
    }
}
