import Activity
import CCurl
import CachePolicy
import EventIO
import Glibc
import HTTPModel

/// All transfers of one loop: one of curl's multi handles with its connections, driven by the loop. Loop-bound.
///
/// curl forbids most calls from inside its callbacks. Requests that a delegate makes there are carried out once curl
/// has returned (`leavingCurl`), and only then do delegates receive results that curl has reported.
package final class UpstreamClient {
    package let settings: UpstreamSettings
    package let policy: Current<AddressPolicy>
    /// The proxy through which origins are reached.
    let outgoing: Current<OutgoingProxy?>
    package let loop: EventLoop

    /// nil after `shutdown`.
    private var multi: UnsafeMutableRawPointer?
    private var timer: LoopTimer?
    private var sockets: [curl_socket_t: SocketInterest] = [:]
    private var transfers: [ObjectIdentifier: CurlTransfer] = [:]
    /// Those of the last requests, the latest new one last.
    private var origins: [EasyHandle.ReadOrigin] = []
    private static let mostOrigins = 16
    private var postponed: [CurlTransfer] = []
    let resolver: NameResolver
    let slots: TransferSlots
    /// Counts the responses of servers, redirects among them.
    let responses: StatusCounters
    private let sessions = TLSSessions()
    var originSockets = OriginSockets()
    private var isInsideCurl = false
    /// Starts requests instead of curl, in a simulation.
    package var simulated: ((UpstreamRequest, any TransferDelegate) -> any Transfer)?
    /// Initially `socket`; tests replace it with one that fails.
    package var makeSocket: (_ domain: Int32, _ type: Int32, _ protocol: Int32) -> Int32 = { Glibc.socket($0, $1, $2) }

    /// - Parameters:
    ///   - resolver: one for all loops.
    ///   - slots: one for all loops.
    ///   - outgoing: the proxy through which origins are reached.
    package init(
        loop: EventLoop, policy: Current<AddressPolicy>, settings: UpstreamSettings = UpstreamSettings(),
        resolver: NameResolver = NameResolver(nanoseconds: MonotonicClock.nanoseconds),
        slots: TransferSlots = TransferSlots(), outgoing: Current<OutgoingProxy?> = Current(nil),
        responses: StatusCounters = StatusCounters()
    ) {
        loop.assertOnLoop()
        CurlLibrary.start()
        guard let multi = curl_multi_init() else { fatalError("curl_multi_init: out of memory") }
        self.loop = loop
        self.policy = policy
        self.settings = settings
        self.resolver = resolver
        self.slots = slots
        self.responses = responses
        self.outgoing = outgoing
        self.multi = multi
        timer = LoopTimer(on: loop) { [unowned self] in self.act(CURL_SOCKET_TIMEOUT, 0) }
        setUp(multi)
    }

    deinit {
        assert(multi == nil, "an UpstreamClient was dropped without shutdown()")
    }

    /// Transfers that have neither finished nor been cancelled.
    package var openTransfers: Int { transfers.count }

    /// The proxy through which a host is reached, without its credentials; nil if it is reached directly.
    package func proxy(to host: String) -> String? {
        outgoing.value.flatMap { $0.carries(host: host) ? $0.address : nil }
    }

    /// Starts a request. The delegate is called later, never from inside this call, even about an invalid URL. After
    /// `shutdown`, the transfer counts as cancelled.
    package func start(_ request: UpstreamRequest, delegate: any TransferDelegate) -> any Transfer {
        loop.assertOnLoop()
        if let simulated { return simulated(request, delegate) }
        let transfer = CurlTransfer(request, client: self, delegate: delegate)
        guard multi != nil else {
            transfer.cancel()
            return transfer
        }
        transfers[ObjectIdentifier(transfer)] = transfer
        leavingCurl(transfer)
        return transfer
    }

    /// Cancels all transfers and closes all connections. Not from inside `receivedHead` or `receivedBody`.
    package func shutdown() {
        loop.assertOnLoop()
        precondition(!isInsideCurl, "shutdown from inside curl")
        guard let multi else { return }
        for transfer in Array(transfers.values) { transfer.cancel() }
        self.multi = nil
        curl_multi_cleanup(multi)
        timer = nil
        sockets.removeAll()
    }

    // MARK: For transfers

    /// Lets the transfer call curl: now, or when curl's callback has returned.
    func leavingCurl(_ transfer: CurlTransfer) {
        if isInsideCurl { postponed.append(transfer) } else { transfer.actOutsideCurl() }
    }

    func makeHandle() -> EasyHandle { EasyHandle(sessions) }

    func origin(of url: UpstreamURL) -> EasyHandle.ReadOrigin {
        if let known = origins.first(where: { url.text.hasPrefix($0.text) }) { return known }
        let origin = EasyHandle.ReadOrigin(url.origin)
        if origins.count >= Self.mostOrigins { origins.removeFirst() }
        origins.append(origin)
        return origin
    }

    func add(_ easy: EasyHandle) {
        guard let multi else { return }
        let code = curl_multi_add_handle(multi, easy.curl)
        precondition(code == CURLM_OK, "curl_multi_add_handle: \(String(cString: curl_multi_strerror(code)))")
    }

    func remove(_ easy: EasyHandle) {
        guard let multi else { return }
        let code = curl_multi_remove_handle(multi, easy.curl)
        precondition(code == CURLM_OK, "curl_multi_remove_handle: \(String(cString: curl_multi_strerror(code)))")
    }

    func forget(_ transfer: CurlTransfer) {
        transfers[ObjectIdentifier(transfer)] = nil
    }

    /// More than one transfer has addresses.
    private static let mostRounds = 64

    /// Runs a call that may run curl's callbacks, and then carries out what these had to postpone.
    func callCurl(_ body: () -> Void) {
        assert(HeldLocks.areNone, "curl is called under a lock")
        isInsideCurl = true
        originSockets.hasFailedAttempt = false
        body()
        // curl has chosen the next address, but connects to it only in its next call, which the loop would make after
        // half of the connect timeout. Ends, as each round takes an address from a transfer.
        for _ in 0..<Self.mostRounds {
            guard originSockets.hasFailedAttempt, let multi else { break }
            originSockets.hasFailedAttempt = false
            var running: Int32 = 0
            reel_curl_multi_socket_all(multi, &running)
        }
        isInsideCurl = false
        while !postponed.isEmpty {
            let batch = postponed
            postponed.removeAll()
            for transfer in batch { transfer.actOutsideCurl() }
        }
        reportDone()
    }

    private func reportDone() {
        var left: Int32 = 0
        // A delegate may shut the client down.
        while let multi, let message = curl_multi_info_read(multi, &left) {
            guard message.pointee.msg == CURLMSG_DONE else { continue }
            let code = message.pointee.data.result
            var context: UnsafeMutableRawPointer?
            reel_curl_get_pointer(message.pointee.easy_handle, CURLINFO_PRIVATE, &context)
            Unmanaged<CurlTransfer>.fromOpaque(context!).takeUnretainedValue().hopEnded(code)
        }
    }

    // MARK: Between curl and the loop

    private func setUp(_ multi: UnsafeMutableRawPointer) {
        let context = Unmanaged.passUnretained(self).toOpaque()
        reel_curl_multi_set_long(multi, CURLMOPT_MAXCONNECTS, settings.idleConnections)
        // HTTP/2, but one transfer per connection: for a paused stream, curl receives up to 32 MiB while other streams
        // of its connection continue.
        reel_curl_multi_set_long(multi, CURLMOPT_PIPELINING, CURLPIPE_NOTHING)
        reel_curl_multi_set_pointer(multi, CURLMOPT_SOCKETDATA, context)
        reel_curl_multi_set_pointer(multi, CURLMOPT_TIMERDATA, context)
        reel_curl_multi_set_socket(multi) { _, fd, what, context, _ in
            Unmanaged<UpstreamClient>.fromOpaque(context!).takeUnretainedValue().watch(fd, what)
            return 0
        }
        reel_curl_multi_set_timer(multi) { _, milliseconds, context in
            Unmanaged<UpstreamClient>.fromOpaque(context!).takeUnretainedValue().scheduleTimer(milliseconds)
            return 0
        }
    }

    private func act(_ fd: curl_socket_t, _ what: Int32) {
        callCurl {
            guard let multi else { return }
            var running: Int32 = 0
            curl_multi_socket_action(multi, fd, what, &running)
        }
    }

    private func watch(_ fd: curl_socket_t, _ what: Int32) {
        if what == CURL_POLL_REMOVE {
            // Now, before curl closes it: the number may then be used for another socket. Usually it stays open, for
            // the next request.
            sockets[fd]?.set(read: false, write: false)
            return originSockets.left(fd)
        }
        let interest = sockets[fd] ?? makeInterest(fd)
        interest.set(
            read: what == CURL_POLL_IN || what == CURL_POLL_INOUT,
            write: what == CURL_POLL_OUT || what == CURL_POLL_INOUT)
    }

    func closed(_ fd: curl_socket_t) {
        sockets[fd] = nil
        originSockets.closed(fd)
    }

    private func makeInterest(_ fd: curl_socket_t) -> SocketInterest {
        let interest = SocketInterest(
            reader: SocketWatcher(fd, .read, on: loop) { [unowned self] in self.act(fd, CURL_CSELECT_IN) },
            writer: SocketWatcher(fd, .write, on: loop) { [unowned self] in self.act(fd, CURL_CSELECT_OUT) })
        sockets[fd] = interest
        return interest
    }

    /// - Parameter milliseconds: -1 for never. 0 is not a direct call from here either, because curl is on the stack.
    private func scheduleTimer(_ milliseconds: Int) {
        if milliseconds < 0 { timer?.cancel() } else { timer?.schedule(afterSeconds: Double(milliseconds) / 1000) }
    }
}

extension UpstreamClient {
    /// The events that curl waits for on one socket.
    private struct SocketInterest {
        let reader: SocketWatcher
        let writer: SocketWatcher

        func set(read: Bool, write: Bool) {
            if read { reader.arm() } else { reader.disarm() }
            if write { writer.arm() } else { writer.disarm() }
        }
    }
}
