import CCurl
import CachePolicy
import EventIO
import Glibc
import HTTPModel

/// One request to an origin, with its response. Loop-bound; created by `UpstreamClient.start`.
///
/// A *hop* is one exchange with one server; a redirect starts the next. The delegate sees only the last one.
package final class CurlTransfer: Transfer {
    /// The transfer's progress.
    enum Stage {
        /// Started inside one of curl's callbacks, where no handle can be added.
        case waiting
        /// The host's name is being looked up.
        case resolving
        /// Waiting for a slot.
        case queued
        case head
        case body
        /// The head was a redirect; its body is discarded.
        case redirect
        /// Finished or cancelled: the delegate gets no further calls.
        case ended
    }

    /// How long playback waits for a slot, in units of `stallTimeout`.
    private static let stallsInQueue = 4.0
    /// How long a redirect's body is read.
    private static let discardSeconds = 0.2

    /// Retained until the end.
    @exclusivity(unchecked) package var delegate: (any TransferDelegate)?
    package var bodyBytesReceived: Int64 { body.received }
    package var isPaused: Bool { body.flow.isHeld }
    package var isReceiving: Bool { stage == .body }
    package var mayGiveWay: Bool {
        get { body.isRepeatable }
        set { body.isRepeatable = newValue }
    }

    let request: UpstreamRequest
    var client: UpstreamClient?
    // Unchecked: numbers and flags, read or set at once, and a hop, which calls nothing here; else each piece would be.
    @exclusivity(unchecked) var stage = Stage.waiting
    @exclusivity(unchecked) var body = ResponseFlow()
    @exclusivity(unchecked) var hop = Hop()
    var upload = UploadFlow()
    private var slot: HeldSlot
    /// nil if the URL is invalid.
    var route: Route?
    private var priority: UpstreamRequest.Priority
    /// Where the servers are that have answered.
    var scope = AddressScope.public
    @exclusivity(unchecked) private var silence = Silence(from: 0)
    private var stallTimer: LoopTimer?

    init(_ request: UpstreamRequest, client: UpstreamClient, delegate: any TransferDelegate) {
        self.request = request
        route = Route(request)
        // The others are as slow as their clients.
        let slots = request.method.followsRedirects ? client.slots : client.slots.passing ?? client.slots
        slot = HeldSlot(slots, of: request.client)
        self.client = client
        self.delegate = delegate
        priority = request.priority
    }

    // MARK: For the owner

    package func pause() {
        guard stage != .ended, !isPaused, let client else { return }
        body.flow.isHeld = true
        client.leavingCurl(self)
    }

    /// Holds the body back for as long as its reader likes: the transfer gives its slot to others.
    func hold() {
        body.flow.isHeld = true
        guard let client, mayGiveWay else { return slot.park(giveWay: nil) }
        let this = LoopBound(self, on: client.loop)
        slot.park { this.post { $0.giveWay() } }
    }

    private func giveWay() {
        guard stage != .ended, isPaused, mayGiveWay else { return }
        delegate?.transferGivesWay(self)
    }

    package func resume() {
        guard stage != .ended, isPaused, let client else { return }
        (body.flow.isHeld, body.isRepeatable) = (false, false)
        slot.resume()
        silence.resume(at: MonotonicClock.nanoseconds(), bodyBytesReceived)
        guard !body.flow.isResuming else { return }
        body.flow.isResuming = true
        client.loop.afterCallback { self.resumeNow() }
    }

    package func resumeUpload() {
        guard stage != .ended, upload.flow.isHeldInCurl, !upload.flow.isResuming, let client else { return }
        upload.flow.isResuming = true
        client.loop.afterCallback { self.resumeUploadNow() }
    }

    package func hurry() {
        guard priority == .download else { return }
        priority = .playback
        guard stage == .queued, client != nil else { return }
        leaveHop()
        beginHop(onNewConnection: hop.needsNewConnection)
    }

    package func cancel() {
        guard stage != .ended, let client else { return }
        stage = .ended
        delegate = nil
        client.leavingCurl(self)
    }

    // MARK: Outside of curl

    /// Does what had to wait for the end of one of curl's callbacks. Not to be called inside one.
    func actOutsideCurl() {
        switch stage {
        case .waiting: beginHop()
        case .ended: detach()
        case .body where isPaused && !body.flow.isHeldInCurl:
            guard let easy = hop.easy else { return }
            let paused = CURLPAUSE_RECV | upload.flow.bits(CURLPAUSE_SEND)
            body.flow.isHeldInCurl = curl_easy_pause(easy.curl, paused) == CURLE_OK
        case .queued, .resolving, .head, .body, .redirect: break
        }
    }

    private func resumeNow() {
        body.flow.isResuming = false
        guard stage != .ended, !isPaused, let easy = hop.easy, let client else { return }
        stallTimer?.schedule(afterSeconds: client.settings.stallTimeout)
        guard body.flow.isHeldInCurl else { return }
        body.flow.isHeldInCurl = false
        applyPauses(easy, client)
    }

    private func resumeUploadNow() {
        upload.flow.isResuming = false
        guard stage != .ended, upload.flow.isHeldInCurl, let easy = hop.easy, let client else { return }
        upload.flow.isHeldInCurl = false
        noteSign()
        stallTimer?.schedule(afterSeconds: client.settings.stallTimeout)
        applyPauses(easy, client)
    }

    /// Resumes the upload from time to time: while it is paused, curl does not end the exchange, not even after a
    /// complete answer.
    private func lookWhetherAnswered() {
        guard stage == .body, upload.flow.isHeldInCurl, let easy = hop.easy, let client else { return }
        upload.flow.isHeldInCurl = false
        applyPauses(easy, client)
    }

    func lookLaterWhetherAnswered() {
        guard stage == .body, let client else { return }
        upload.lookLater(on: client.loop) { [unowned self] in self.lookWhetherAnswered() }
    }

    /// Tells curl which directions are paused. It delivers the bytes that it has kept at once.
    private func applyPauses(_ easy: EasyHandle, _ client: UpstreamClient) {
        let paused = body.flow.bits(CURLPAUSE_RECV) | upload.flow.bits(CURLPAUSE_SEND)
        var code = CURLE_OK
        client.callCurl { code = curl_easy_pause(easy.curl, paused) }
        guard code != CURLE_OK, stage != .ended else { return }
        finish(with: error(for: code))
    }

    /// Finds the host's addresses, then waits for a slot, and sends the request.
    private func beginHop(onNewConnection: Bool = false) {
        guard let client else { return }
        stage = .resolving
        do throws(UpstreamError) { try followKnownRedirects(client) } catch {
            return client.loop.afterCallback { self.finish(with: error) }
        }
        guard let url = route?.url else {
            // Later, because the owner may still be inside `start`, without the transfer.
            return client.loop.afterCallback { self.finish(with: .badURL(self.request.url)) }
        }
        hop = Hop(
            Way(request, to: url.host, client.outgoing.value), number: hop.number + 1, onNewConnection: onNewConnection)
        if let refused = hop.way.refusedAddress(of: url, client.policy.value) {
            return client.loop.afterCallback { self.finish(with: .addressRefused(host: url.host, address: refused)) }
        }
        if stallTimer == nil { stallTimer = LoopTimer(on: client.loop) { [unowned self] in self.checkForStall() } }
        guard let name = hop.way.peer(of: url).name else { return takeSlot() }
        let this = LoopBound(self, on: client.loop), number = hop.number
        let known = client.resolver.resolve(name, for: request.client) { addresses in
            this.post { $0.resolved(addresses, number) }
        }
        switch known {
        // Later, because the owner may still be inside `start`, without the transfer.
        case .addresses([]): client.loop.afterCallback { self.resolved([], number) }
        case .addresses(let addresses):
            hop.addresses = addresses
            takeSlot()
        case .waiting(let ticket):
            hop.lookUp = ticket
            delegate?.transfer(self, isIn: .names)
            stallTimer?.schedule(afterSeconds: client.settings.connectTimeout)
        }
    }

    /// Skips servers that are known to redirect. The fields change as if they had.
    private func followKnownRedirects(_ client: UpstreamClient) throws(UpstreamError) {
        guard request.method.followsRedirects else { return }
        while let route, let known = delegate?.transfer(self, redirectOf: route.url.text, with: route.fields) {
            try self.route?.follow(known.location, status: known.status, limit: client.settings.maxRedirects)
            if !known.isPublic { scope = .private }
        }
    }

    /// Whether the look-up has begun.
    private var isLookingUp: Bool { hop.lookUp.flatMap { client?.resolver.hasBegun($0) } ?? false }

    private func resolved(_ addresses: [String], _ number: Int) {
        guard stage == .resolving, hop.number == number else { return }
        hop.lookUp = nil
        guard !addresses.isEmpty else { return finish(with: hop.way.unresolved(host)) }
        hop.addresses = addresses
        stallTimer?.cancel()
        takeSlot()
    }

    private func takeSlot() {
        guard let client, let url = route?.url else { return }
        stage = .queued
        let this = LoopBound(self, on: client.loop), number = hop.number
        guard !slot.take(url.host, priority, wake: { this.post { $0.slotCame(number) } }) else { return send(url) }
        delegate?.transfer(self, isIn: .queue)
        // Downloads have time. For playback the limit is generous: a player gives up earlier by itself.
        if priority == .playback {
            stallTimer?.schedule(afterSeconds: client.settings.stallTimeout * Self.stallsInQueue)
        }
    }

    private func slotCame(_ number: Int) {
        guard stage == .queued, hop.number == number, let client, let url = route?.url else { return }
        slot.came(for: url.host)
        // The queue may have taken longer than addresses hold.
        if let name = hop.way.peer(of: url).name, let known = client.resolver.known(name) { hop.addresses = known }
        send(url)
    }

    private func send(_ url: UpstreamURL) {
        guard let client, let route else { return }
        stage = .head
        delegate?.transfer(self, isIn: .response)
        let easy = hop.begin(request, to: url, by: route, client)
        easy.setCallbacks(self, client)
        silence = Silence(from: MonotonicClock.nanoseconds(), at: bodyBytesReceived)
        stallTimer?.schedule(afterSeconds: client.settings.stallTimeout)
        client.add(easy)
    }

    /// curl has finished this hop.
    func hopEnded(_ code: CURLcode) {
        switch stage {
        case .redirect: follow()
        case .head where isSpoiled(code): beginAnew()
        case .head, .body: finish(with: error(for: code))
        case .waiting, .queued, .resolving, .ended: break
        }
    }

    /// Whether to send the request again over a new connection, because this one delivered something else.
    private func isSpoiled(_ code: CURLcode) -> Bool {
        guard request.method.followsRedirects else { return false }
        return hop.isSpoiled(by: code == CURLE_OK ? nil : error(for: code))
    }

    /// Sends the same request again over a new connection.
    private func beginAnew() {
        leaveHop()
        beginHop(onNewConnection: true)
    }

    private func follow() {
        guard let client, let former = route else { return }
        do throws(UpstreamError) {
            try route?.follow(hop.location, status: hop.redirectStatus, limit: client.settings.maxRedirects)
        } catch {
            return finish(with: error)
        }
        delegate?.transfer(
            self,
            followed: ReceivedRedirect(
                url: former.url.text, sent: former.fields, status: hop.redirectStatus, fields: hop.redirectFields,
                target: route?.url.text ?? "", isPublic: scope == .public))
        guard stage != .ended else { return }
        leaveHop()
        beginHop()
    }

    private func error(for code: CURLcode) -> UpstreamError? {
        if let known = hop.error(for: code, host: host) { return known }
        // The answer is complete: whatever an origin sends as the body of a HEAD's answer only ends the connection.
        if stage == .body, code == CURLE_WEIRD_SERVER_REPLY, request.method == .head { return nil }
        guard code != CURLE_OK else {
            return stage == .body ? nil : .broken(detail: "the response ended before its header was complete")
        }
        if code == CURLE_URL_MALFORMAT {
            return route?.location.map { .badRedirect(location: $0) } ?? .badURL(request.url)
        }
        return hop.way.error(
            UpstreamError(code, detail: hop.easy?.detail ?? "", host: host, phase: phase), for: code, to: host)
    }

    /// The host of this hop; a parent's if one is asked.
    var host: String { hop.way.blamed(for: route?.url) }

    private var phase: UpstreamError.Phase {
        stage == .body ? .body : hop.easy?.isConnected == true ? .response : .connect
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
        upload.stopLooking()
        leaveHop()
        client.forget(self)
        self.client = nil
    }

    private func leaveHop() {
        guard let client else { return }
        releaseHandle()
        // In a queue, the next hop may wait for as long as it likes.
        stallTimer?.cancel()
        if let lookUp = hop.lookUp { client.resolver.cancel(lookUp) }
        hop.lookUp = nil
        slot.leave()
    }

    private func releaseHandle() {
        guard let easy = hop.easy, let client else { return }
        hop.easy = nil
        body.flow.isHeldInCurl = false
        if let ends = hop.ends, easy.isHTTP2 { client.originSockets.isHTTP2(ends) }
        client.remove(easy)
    }

    // MARK: Stalls

    /// A redirect is followed at its head, but for a moment in which a short body saves its connection.
    func followSoon() { stallTimer?.schedule(afterSeconds: Self.discardSeconds) }

    func noteSign() { silence.end(at: MonotonicClock.nanoseconds()) }

    private func checkForStall() {
        // Its body does not matter.
        if stage == .redirect { return follow() }
        if stage == .queued { return finish(with: .timedOut(host: host, phase: .queue)) }
        if stage == .resolving { return finish(with: .timedOut(host: host, phase: isLookingUp ? .connect : .names)) }
        guard stage != .ended, let easy = hop.easy, let client else { return }
        // A paused transfer may be silent; `resume` starts the timer again.
        if stage == .body && isPaused || upload.flow.isHeldInCurl && !upload.isRefused { return }
        let silence = silence.length(at: MonotonicClock.nanoseconds(), connecting: easy.microsecondsToConnect)
        guard silence >= client.settings.stallTimeout || isTrickling(client) else {
            stallTimer?.schedule(afterSeconds: max(0.001, client.settings.stallTimeout - silence))
            return
        }
        finish(with: .timedOut(host: host, phase: phase))
    }

    /// Whether the answer keeps a slot that others wait for, and comes so slowly that its end will not be lived to see:
    /// no media are that slow, live ones included. A paused transfer has no slot, and its measurement begins anew.
    private func isTrickling(_ client: UpstreamClient) -> Bool {
        guard request.content == .none else { return false }
        let now = MonotonicClock.nanoseconds()
        return silence.isTrickling(at: now, bodyBytesReceived, for: client.settings.stallTimeout / 2) && slot.isAwaited
    }
}
