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
    private enum Stage {
        /// Started inside one of curl's callbacks, where no handle can be added.
        case waiting
        case head
        case body
        /// The head was a redirect; what comes now is discarded.
        case redirect
        /// Finished or cancelled: the delegate hears no more.
        case ended
    }

    /// Bytes of a redirect's body that are read to keep its connection; beyond that a new one is cheaper.
    private static let discardLimit = 64 * 1024

    /// Held until the end.
    package var delegate: (any TransferDelegate)?
    /// Bytes that the delegate has taken.
    package private(set) var bodyBytesReceived: Int64 = 0
    /// Asked to hold the body back. The head comes all the same, and so does the end where no byte is left.
    package private(set) var isPaused = false

    private let request: UpstreamRequest
    private var client: UpstreamClient?
    private var stage = Stage.waiting
    private var isPausedInCurl = false
    private var isResuming = false
    /// The delegate has nothing to send yet, which is no stall of the origin's.
    private var isUploadPaused = false
    private var isUploadResuming = false
    /// The answer is there before the request is, and is none that waits for the rest of it.
    private var isRefused = false
    private var uploadTimer: LoopTimer?

    /// Seconds between two looks whether an answer has ended, while the upload waits.
    private static let lookInterval = 0.05

    // This hop
    private var easy: EasyHandle?
    private var url: UpstreamURL?
    private var fields: FieldLines
    private var collector = HeadCollector()
    private var location = ""
    private var discarded = 0
    private var refused: String?
    /// Why a callback made curl give up.
    private var fault: UpstreamError?

    private var redirects = 0
    /// Whether each address that was asked is public.
    private var isPublic = true
    private var startOfHop: UInt64 = 0
    private var lastSign: UInt64 = 0
    private var stallTimer: LoopTimer?

    init(_ request: UpstreamRequest, client: UpstreamClient, delegate: any TransferDelegate) {
        self.request = request
        url = UpstreamURL(request.url)
        self.client = client
        self.delegate = delegate
        fields = request.fields
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
            isPausedInCurl = curl_easy_pause(easy.curl, CURLPAUSE_RECV | (isUploadPaused ? CURLPAUSE_SEND : 0)) == CURLE_OK
        case .head, .body, .redirect: break
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

    /// While an upload is paused, curl does not end, not even where it would send no more as the answer is complete: so it is let go on from
    /// time to time.
    private func lookWhetherAnswered() {
        guard stage == .body, isUploadPaused, let easy, let client else { return }
        isUploadPaused = false
        applyPauses(easy, client)
    }

    private func lookLaterWhetherAnswered() {
        guard stage == .body, let client else { return }
        if uploadTimer == nil { uploadTimer = LoopTimer(on: client.loop) { [unowned self] in self.lookWhetherAnswered() } }
        uploadTimer?.schedule(afterSeconds: Self.lookInterval)
    }

    /// Tells curl which directions are paused. It delivers at once what it has kept.
    private func applyPauses(_ easy: EasyHandle, _ client: UpstreamClient) {
        let paused = (isPausedInCurl ? CURLPAUSE_RECV : CURLPAUSE_CONT) | (isUploadPaused ? CURLPAUSE_SEND : CURLPAUSE_CONT)
        var code = CURLE_OK
        client.callCurl { code = curl_easy_pause(easy.curl, paused) }
        guard code != CURLE_OK, stage != .ended else { return }
        finish(with: error(for: code))
    }

    private func beginHop() {
        guard let client else { return }
        stage = .head
        guard let url else {
            // The owner does not have the transfer yet, if this is still its `start`.
            return client.loop.afterCallback { self.finish(with: .badURL(self.request.url)) }
        }
        collector = HeadCollector()
        discarded = 0
        refused = nil
        fault = nil
        let easy = client.takeHandle()
        self.easy = easy
        easy.setUp(url: url.text, settings: client.settings)
        easy.set(request, fields: fields, settings: client.settings)
        setCallbacks(easy)
        startOfHop = MonotonicClock.nanoseconds()
        lastSign = startOfHop
        if stallTimer == nil { stallTimer = LoopTimer(on: client.loop) { [unowned self] in self.checkForStall() } }
        stallTimer?.schedule(afterSeconds: client.settings.stallTimeout)
        client.add(easy)
    }

    /// Curl is done with this hop.
    func hopEnded(_ code: CURLcode) {
        switch stage {
        case .redirect: follow()
        case .head, .body: finish(with: error(for: code))
        case .waiting, .ended: break
        }
    }

    private func follow() {
        guard let client, let url else { return }
        guard redirects < client.settings.maxRedirects else { return finish(with: .tooManyRedirects(limit: client.settings.maxRedirects)) }
        guard let next = url.resolving(location) else { return finish(with: .badRedirect(location: location)) }
        redirects += 1
        if !next.hasSameOrigin(as: url) {
            // RFC 9110 §15.4: what was meant for one origin is not told to another, nor to the first when a redirect leads back.
            for name in FieldLines.credentials + request.confined { fields.remove(name) }
        }
        releaseHandle()
        self.url = next
        beginHop()
    }

    private func error(for code: CURLcode) -> UpstreamError? {
        if let fault { return fault }
        guard code != CURLE_OK else { return stage == .body ? nil : .broken(detail: "the response ended before its head did") }
        if code == CURLE_COULDNT_CONNECT || code == CURLE_ABORTED_BY_CALLBACK, let refused { return .addressRefused(host: host, address: refused) }
        if code == CURLE_URL_MALFORMAT { return redirects > 0 ? .badRedirect(location: location) : .badURL(request.url) }
        return UpstreamError(code, detail: easy?.detail ?? "", host: host, phase: phase)
    }

    /// Of this hop.
    private var host: String { url?.host ?? "" }

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
        releaseHandle()
        client.forget(self)
        self.client = nil
    }

    private func releaseHandle() {
        guard let easy, let client else { return }
        self.easy = nil
        isPausedInCurl = false
        client.giveBack(easy)
    }

    // MARK: Stalls

    // Not curl's low speed limit: it averages over seconds, and so fails a stalled transfer five seconds late.

    private func noteSign() {
        lastSign = MonotonicClock.nanoseconds()
    }

    private func checkForStall() {
        guard stage != .ended, let easy, let client else { return }
        // A paused transfer may be silent for as long as it likes; `resume` sets the timer again.
        if stage == .body && isPaused || isUploadPaused && !isRefused { return }
        let now = MonotonicClock.nanoseconds()
        let connectTime = easy.microsecondsToConnect
        // While it connects, curl's own limit is at work.
        let since = connectTime > 0 ? max(lastSign, startOfHop + UInt64(connectTime) * 1000) : now  // no trap: microseconds that have passed, above 0
        let silence = since < now ? Double(now - since) / 1e9 : 0  // no trap: compared before
        guard silence >= client.settings.stallTimeout else {
            stallTimer?.schedule(afterSeconds: max(0.001, client.settings.stallTimeout - silence))
            return
        }
        // A redirect's body is of no interest.
        if stage == .redirect { follow() } else { finish(with: .timedOut(host: host, phase: phase)) }
    }

    // MARK: Inside of curl

    private func setCallbacks(_ easy: EasyHandle) {
        // Unretained: the client holds the transfer for as long as curl has its handle.
        let context = Unmanaged.passUnretained(self).toOpaque()
        easy.set(CURLOPT_PRIVATE, pointer: context)
        easy.set(CURLOPT_WRITEDATA, pointer: context)
        easy.set(CURLOPT_HEADERDATA, pointer: context)
        easy.set(CURLOPT_OPENSOCKETDATA, pointer: context)
        easy.set(CURLOPT_PREREQDATA, pointer: context)
        if request.content != .none {
            easy.set(CURLOPT_READDATA, pointer: context)
            reel_curl_set_data_callback(easy.curl, CURLOPT_READFUNCTION) { bytes, size, count, context in
                Unmanaged<Transfer>.fromOpaque(context!)._withUnsafeGuaranteedRef {
                    $0.fillUpload(UnsafeMutableRawBufferPointer(start: bytes, count: size * count))
                }
            }
        }
        reel_curl_set_data_callback(easy.curl, CURLOPT_WRITEFUNCTION) { bytes, size, count, context in
            Unmanaged<Transfer>.fromOpaque(context!)._withUnsafeGuaranteedRef {
                $0.received(UnsafeRawBufferPointer(start: bytes, count: size * count))
            }
        }
        reel_curl_set_data_callback(easy.curl, CURLOPT_HEADERFUNCTION) { bytes, size, count, context in
            Unmanaged<Transfer>.fromOpaque(context!)._withUnsafeGuaranteedRef {
                $0.receivedLine(UnsafeRawBufferPointer(start: bytes, count: size * count))
            }
        }
        reel_curl_set_opensocket(easy.curl) { context, _, address in
            Unmanaged<Transfer>.fromOpaque(context!)._withUnsafeGuaranteedRef { $0.openSocket(to: address!) }
        }
        reel_curl_set_prereq(easy.curl) { context, address, _, _, _ in
            Unmanaged<Transfer>.fromOpaque(context!)._withUnsafeGuaranteedRef { $0.mayAsk(String(cString: address!)) ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT }
        }
    }

    /// To curl: not all bytes were handled, so give this transfer up.
    private static let giveUp = 0

    private func received(_ bytes: UnsafeRawBufferPointer) -> Int {
        switch stage {
        case .body:
            if isPaused { return pauseInCurl() }
            lastSign = MonotonicClock.nanoseconds()
            guard let delegate else { return Self.giveUp }
            let isTaken = delegate.transfer(self, receivedBody: bytes)
            guard stage != .ended else { return Self.giveUp }
            guard isTaken else {
                isPaused = true
                return pauseInCurl()
            }
            bodyBytesReceived += Int64(bytes.count)  // no trap: what has come
            return bytes.count
        case .redirect:
            discarded += bytes.count
            return discarded > Self.discardLimit ? Self.giveUp : bytes.count
        case .waiting, .head, .ended:
            return Self.giveUp
        }
    }

    private func pauseInCurl() -> Int {
        isPausedInCurl = true
        return Int(CURL_WRITEFUNC_PAUSE)
    }

    private func fillUpload(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
        guard stage != .ended, let delegate else { return Int(CURL_READFUNC_ABORT) }
        let step = delegate.transfer(self, fillUpload: buffer)
        guard stage != .ended else { return Int(CURL_READFUNC_ABORT) }
        switch step {
        case .bytes(let count):
            noteSign()
            return count
        case .wait:
            isUploadPaused = true
            lookLaterWhetherAnswered()
            return Int(CURL_READFUNC_PAUSE)
        case .end:
            noteSign()
            return 0
        }
    }

    private func receivedLine(_ line: UnsafeRawBufferPointer) -> Int {
        guard stage != .ended else { return Self.giveUp }
        noteSign()
        switch collector.take(line) {
        case .more: return line.count
        case .malformed(let detail):
            fault = .protocolViolation(detail: detail)
            return Self.giveUp
        case .complete(let status, let fields): return receivedHead(status, fields) ? line.count : Self.giveUp
        }
    }

    private func receivedHead(_ status: Int, _ fields: FieldLines) -> Bool {
        if request.method.followsRedirects, let location = fields["Location"], [301, 302, 303, 307, 308].contains(status) {
            self.location = location
            stage = .redirect
            return true
        }
        do throws(UpstreamError) {
            let head = UpstreamHead(
                status: status, fields: fields, finalURL: url?.text ?? request.url, contentLength: try fields.declaredLength(),
                isFromPublicAddress: isPublic, receivedAt: Int64(time(nil)))
            stage = .body
            isRefused = status >= 300
            // Curl does not send on to who has answered with an error, and ends at once where it is let.
            if isRefused { resumeUpload() } else if isUploadPaused { lookLaterWhetherAnswered() }
            delegate?.transfer(self, receivedHead: head)
            return stage != .ended
        } catch {
            fault = error
            return false
        }
    }

    /// The check is on the address that is connected to, whatever the name stood for when somebody looked before.
    private func openSocket(to address: UnsafeMutablePointer<curl_sockaddr>) -> curl_socket_t {
        guard stage != .ended, let client, let peer = SocketPeer(address) else { return CURL_SOCKET_BAD }
        guard client.policy.value.permits(host: host, address: peer.address) else {
            if refused == nil { refused = peer.text }
            return CURL_SOCKET_BAD
        }
        let flags = Int32(SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)  // no trap: constants
        return socket(address.pointee.family, address.pointee.socktype | flags, address.pointee.protocol)
    }

    /// Asked for each request. A connection that is used again may have been made when the policy was another.
    private func mayAsk(_ address: String) -> Bool {
        if let client, let peer = IPAddress(address), client.policy.value.permits(host: host, address: peer) {
            isPublic = isPublic && peer.isPublic
            return true
        }
        refused = address
        return false
    }
}
