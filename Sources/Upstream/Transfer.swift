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

    /// How many times `stallTimeout` one that is played waits for its turn.
    private static let stallsInQueue = 4.0

    /// Held until the end.
    package var delegate: (any TransferDelegate)?
    /// Bytes that the delegate has taken.
    package internal(set) var bodyBytesReceived: Int64 = 0
    /// Asked to hold the body back. The head comes all the same, and so does the end where no byte is left.
    package var isPaused: Bool { body.isHeld }

    let request: UpstreamRequest
    var client: UpstreamClient?
    var stage = Stage.waiting
    /// What comes.
    var body = Flow()
    /// What goes out. Held back while the delegate has nothing to send yet, which is no stall of the origin's.
    var upload = Flow()
    /// The answer is there before the request is, and is none that waits for the rest of it.
    var isRefused = false
    private var uploadTimer: LoopTimer?

    /// Seconds between two looks whether an answer has ended, while the upload waits.
    private static let lookInterval = 0.05

    private var slot: HeldSlot

    // This hop
    private var lookUp: NameResolver.Ticket?
    /// Tells what comes for a hop that is over.
    private var hopNumber = 0
    var easy: EasyHandle?
    /// nil where the URL is none.
    private(set) var route: Route?
    var hop = Hop()
    /// The next hop, or this one again, is to have a connection of its own.
    private var needsNewConnection = false

    private var priority: UpstreamRequest.Priority
    /// Whether each address that was asked is public, and none of this machine's networks.
    var isPublic = true
    private var silence = Silence(from: 0)
    private var stallTimer: LoopTimer?

    init(_ request: UpstreamRequest, client: UpstreamClient, delegate: any TransferDelegate) {
        self.request = request
        route = Route(request)
        slot = HeldSlot(client.slots)
        self.client = client
        self.delegate = delegate
        priority = request.priority
    }

    // MARK: What the owner asks for

    /// Holds the body back. The bytes that were under way come after `resume`.
    package func pause() {
        guard stage != .ended, !isPaused, let client else { return }
        hold()
        client.leavingCurl(self)
    }

    /// What is paused takes no slot from others.
    func hold() {
        body.isHeld = true
        slot.park(true)
    }

    /// Lets the body come again, once the callback that is running now has returned.
    package func resume() {
        guard stage != .ended, isPaused, let client else { return }
        body.isHeld = false
        slot.park(false)
        noteSign()
        guard !body.isResuming else { return }
        body.isResuming = true
        client.loop.afterCallback { self.resumeNow() }
    }

    /// The delegate, which has answered `wait`, has something to send now.
    package func resumeUpload() {
        guard stage != .ended, upload.isHeldInCurl, !upload.isResuming, let client else { return }
        upload.isResuming = true
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
        client.leavingCurl(self)
    }

    // MARK: Outside of curl

    /// Does what could not be done while one of curl's callbacks was running. Not to be called inside of one.
    func actOutsideCurl() {
        switch stage {
        case .waiting: beginHop()
        case .ended: detach()
        case .body where isPaused && !body.isHeldInCurl:
            guard let easy else { return }
            body.isHeldInCurl = curl_easy_pause(easy.curl, CURLPAUSE_RECV | upload.bits(CURLPAUSE_SEND)) == CURLE_OK
        case .queued, .resolving, .head, .body, .redirect: break
        }
    }

    private func resumeNow() {
        body.isResuming = false
        guard stage != .ended, !isPaused, let easy, let client else { return }
        stallTimer?.schedule(afterSeconds: client.settings.stallTimeout)
        guard body.isHeldInCurl else { return }
        body.isHeldInCurl = false
        applyPauses(easy, client)
    }

    private func resumeUploadNow() {
        upload.isResuming = false
        guard stage != .ended, upload.isHeldInCurl, let easy, let client else { return }
        upload.isHeldInCurl = false
        noteSign()
        stallTimer?.schedule(afterSeconds: client.settings.stallTimeout)
        applyPauses(easy, client)
    }

    /// While an upload is paused, curl does not end, not even where it would send no more as the answer is complete: so
    /// it is let go on from time to time.
    private func lookWhetherAnswered() {
        guard stage == .body, upload.isHeldInCurl, let easy, let client else { return }
        upload.isHeldInCurl = false
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
        let paused = body.bits(CURLPAUSE_RECV) | upload.bits(CURLPAUSE_SEND)
        var code = CURLE_OK
        client.callCurl { code = curl_easy_pause(easy.curl, paused) }
        guard code != CURLE_OK, stage != .ended else { return }
        finish(with: error(for: code))
    }

    /// Waits for a slot, then for the addresses of the host, and asks.
    private func beginHop() {
        guard let client else { return }
        stage = .queued
        guard let url = route?.url else {
            // The owner does not have the transfer yet, if this is still its `start`.
            return client.loop.afterCallback { self.finish(with: .badURL(self.request.url)) }
        }
        hop = Hop()
        hopNumber += 1
        if stallTimer == nil { stallTimer = LoopTimer(on: client.loop) { [unowned self] in self.checkForStall() } }
        let this = LoopBound(self, on: client.loop), number = hopNumber
        guard !slot.take(url.host, priority, wake: { this.post { $0.slotCame(number) } }) else {
            return slotCame(number)
        }
        delegate?.transfer(self, isIn: .queue)
        // Who downloads has time. Who plays keeps its place for long: a player that waits for its first byte gives up
        // sooner by itself.
        if priority == .playback {
            stallTimer?.schedule(afterSeconds: client.settings.stallTimeout * Self.stallsInQueue)
        }
    }

    private func slotCame(_ number: Int) {
        guard stage == .queued, hopNumber == number, let client, let url = route?.url else { return }
        slot.came(for: url.host)
        guard let name = url.name else { return ask([]) }
        stage = .resolving
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
        guard let client, let route else { return }
        stage = .head
        delegate?.transfer(self, isIn: .response)
        let easy = client.makeHandle()
        self.easy = easy
        easy.setUp(url: route.url.text, settings: client.settings)
        easy.set(addresses: addresses, of: route.url)
        easy.set(request, fields: route.fields, settings: client.settings)
        if needsNewConnection { easy.set(CURLOPT_FRESH_CONNECT, 1) }
        setCallbacks(easy)
        silence = Silence(from: MonotonicClock.nanoseconds())
        stallTimer?.schedule(afterSeconds: client.settings.stallTimeout)
        client.add(easy)
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

    /// Whether the request may go out once more, over a connection of its own, as this one had something else on it.
    private func isSpoiled(_ code: CURLcode) -> Bool {
        guard request.method.followsRedirects, !needsNewConnection else { return false }
        return hop.isSpoiled(by: code == CURLE_OK ? nil : error(for: code))
    }

    /// The same request, over a connection of its own.
    private func beginAnew() {
        leaveHop()
        needsNewConnection = true
        beginHop()
    }

    private func follow() {
        guard let client else { return }
        do throws(UpstreamError) {
            try route?.follow(hop.location, limit: client.settings.maxRedirects)
        } catch {
            return finish(with: error)
        }
        leaveHop()
        needsNewConnection = false
        beginHop()
    }

    private func error(for code: CURLcode) -> UpstreamError? {
        if let known = hop.error(for: code, host: host) { return known }
        // All of the answer is there; what an origin sends as the body of an answer that has none is its connection's
        // end only.
        if stage == .body, code == CURLE_WEIRD_SERVER_REPLY, request.method == .head { return nil }
        guard code != CURLE_OK else {
            return stage == .body ? nil : .broken(detail: "the response ended before its head did")
        }
        if code == CURLE_URL_MALFORMAT {
            return route?.location.map { .badRedirect(location: $0) } ?? .badURL(request.url)
        }
        return UpstreamError(code, detail: easy?.detail ?? "", host: host, phase: phase)
    }

    /// Of this hop.
    var host: String { route?.url.host ?? "" }

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
        slot.leave()
    }

    private func releaseHandle() {
        guard let easy, let client else { return }
        self.easy = nil
        body.isHeldInCurl = false
        if let ends = hop.ends, easy.isHTTP2 { client.originSockets.isHTTP2(ends) }
        client.remove(easy)
    }

    // MARK: Stalls

    func noteSign() { silence.end(at: MonotonicClock.nanoseconds()) }

    private func checkForStall() {
        if stage == .queued { return finish(with: .timedOut(host: host, phase: .queue)) }
        if stage == .resolving { return finish(with: .timedOut(host: host, phase: isLookingUp ? .connect : .names)) }
        guard stage != .ended, let easy, let client else { return }
        // A paused transfer may be silent for as long as it likes; `resume` sets the timer again.
        if stage == .body && isPaused || upload.isHeldInCurl && !isRefused { return }
        let silence = silence.length(at: MonotonicClock.nanoseconds(), connecting: easy.microsecondsToConnect)
        guard silence >= client.settings.stallTimeout else {
            stallTimer?.schedule(afterSeconds: max(0.001, client.settings.stallTimeout - silence))
            return
        }
        // A redirect's body is of no interest.
        if stage == .redirect { follow() } else { finish(with: .timedOut(host: host, phase: phase)) }
    }
}
