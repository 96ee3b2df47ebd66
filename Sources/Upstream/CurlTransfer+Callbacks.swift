import CCurl
import CachePolicy
import EventIO
import Glibc
import HTTPModel

/// Callbacks from curl, on the loop: they must not add, remove or pause handles.
extension CurlTransfer {
    func setCallbacks(_ easy: EasyHandle) {
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
                Unmanaged<CurlTransfer>.fromOpaque(context!)._withUnsafeGuaranteedRef {
                    $0.fillUpload(UnsafeMutableRawBufferPointer(start: bytes, count: size * count))
                }
            }
        }
        reel_curl_set_data_callback(easy.curl, CURLOPT_WRITEFUNCTION) { bytes, size, count, context in
            Unmanaged<CurlTransfer>.fromOpaque(context!)._withUnsafeGuaranteedRef {
                $0.received(UnsafeRawBufferPointer(start: bytes, count: size * count))
            }
        }
        reel_curl_set_data_callback(easy.curl, CURLOPT_HEADERFUNCTION) { bytes, size, count, context in
            Unmanaged<CurlTransfer>.fromOpaque(context!)._withUnsafeGuaranteedRef {
                $0.receivedLine(UnsafeRawBufferPointer(start: bytes, count: size * count))
            }
        }
        reel_curl_set_opensocket(easy.curl) { context, _, address in
            Unmanaged<CurlTransfer>.fromOpaque(context!)._withUnsafeGuaranteedRef { $0.openSocket(to: address!) }
        }
        reel_curl_set_prereq(easy.curl) { context, address, _, port, localPort in
            let ends = OriginSockets.Ends(address: String(cString: address!), port: port, localPort: localPort)
            return Unmanaged<CurlTransfer>.fromOpaque(context!)._withUnsafeGuaranteedRef {
                $0.mayRequest(ends) ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT
            }
        }
        // Also called when the connection is closed long after this exchange: by the client, which outlives it.
        easy.set(CURLOPT_CLOSESOCKETDATA, pointer: client.map { Unmanaged.passUnretained($0).toOpaque() })
        reel_curl_set_closesocket(easy.curl) { context, socket in
            Unmanaged<UpstreamClient>.fromOpaque(context!)._withUnsafeGuaranteedRef { $0.originSockets.closed(socket) }
            return close(socket)
        }
    }

    /// Tells curl that not all bytes were handled, so that it gives up this transfer.
    private static let giveUp = 0

    private func received(_ bytes: UnsafeRawBufferPointer) -> Int {
        switch stage {
        case .body:
            if isPaused { return pauseInCurl() }
            noteSign()
            guard let delegate else { return Self.giveUp }
            let isTaken = delegate.transfer(self, receivedBody: bytes)
            guard stage != .ended else { return Self.giveUp }
            guard isTaken else {
                if !isPaused { hold() }
                return pauseInCurl()
            }
            bodyBytesReceived += Int64(bytes.count) // no trap: what has come
            return bytes.count
        case .redirect:
            return hop.discard(bytes.count) ? bytes.count : Self.giveUp
        case .waiting, .queued, .resolving, .head, .ended:
            return Self.giveUp
        }
    }

    private func pauseInCurl() -> Int {
        body.isHeldInCurl = true
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
            upload.isHeldInCurl = true
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
        switch hop.collector.take(line) {
        case .more: return line.count
        case .interim(let status, let fields):
            delegate?.transfer(
                self,
                receivedInterim: InterimResponse(
                    status: status, fields: fields, url: route?.url.text ?? request.url))
            return stage != .ended ? line.count : Self.giveUp
        case .malformed(let detail):
            hop.fault = .protocolViolation(detail: detail)
            return Self.giveUp
        case .complete(let status, let fields): return receivedHead(status, fields) ? line.count : Self.giveUp
        }
    }

    private func receivedHead(_ status: Int, _ fields: HeaderFields) -> Bool {
        client?.responses.add(status)
        if !way.isDirect, let url = route?.url, let client {
            scope.add(way.scope(of: url, fields, client.policy.value))
        }
        if request.method.followsRedirects, let location = fields["Location"],
            [301, 302, 303, 307, 308].contains(status)
        {
            (hop.location, hop.redirectStatus, hop.redirectFields) = (location, status, fields)
            stage = .redirect
            return true
        }
        // What comes through a tunnel is the origin's.
        if status == 407, case .proxy(let proxy, _) = way, proxy.kind == .http, route?.url.scheme == "http" {
            hop.fault = .proxyDenied(proxy: proxy.address)
            return false
        }
        do throws(UpstreamError) {
            let head = UpstreamHead(
                status: status, fields: fields, finalURL: route?.url.text ?? request.url,
                contentLength: try fields.declaredLength(),
                scope: scope, hasMoved: route?.hasMoved ?? false, receivedAt: Int64(time(nil)))
            stage = .body
            isRefused = status >= 300
            // After an error answer, curl stops sending the body, and ends at once if it is not paused.
            if isRefused { resumeUpload() } else if upload.isHeldInCurl { lookLaterWhetherAnswered() }
            delegate?.transfer(self, receivedHead: head)
            return stage != .ended
        } catch {
            hop.fault = error
            return false
        }
    }

    /// Checks the very address that curl connects to, whatever the name meant in an earlier look-up.
    private func openSocket(to address: UnsafeMutablePointer<curl_sockaddr>) -> curl_socket_t {
        guard stage != .ended, let client, let peer = SocketPeer(address) else { return CURL_SOCKET_BAD }
        // A parent's or a proxy's address is configured. It is not an origin's: nobody else can name it as one.
        guard !way.isDirect || client.policy.value.permits(host: host, address: peer.address) else {
            if hop.refused == nil { hop.refused = peer.text }
            return CURL_SOCKET_BAD
        }
        let flags = Int32(SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue) // no trap: constants
        let made = client.makeSocket(address.pointee.family, address.pointee.socktype | flags, address.pointee.protocol)
        if made < 0 {
            hop.lacksDescriptors = hop.lacksDescriptors || UpstreamError.isLackOfDescriptors(errno)
        } else {
            hop.sockets.append(made)
            client.originSockets.opened(made)
        }
        return made
    }

    /// Called before each request is sent. A reused connection may have been established under another policy, and its
    /// origin may have sent more after its last answer.
    private func mayRequest(_ ends: OriginSockets.Ends) -> Bool {
        guard let client, let peer = IPAddress(ends.address),
            !way.isDirect || client.policy.value.permits(host: host, address: peer)
        else {
            hop.refused = ends.address
            return false
        }
        hop.ends = ends
        if hop.sockets.isEmpty {
            hop.foundSurplus = client.originSockets.hasSurplus(ends)
            guard !hop.foundSurplus else { return false }
        } else {
            client.originSockets.named(ends, among: hop.sockets)
        }
        if way.isDirect, !client.policy.value.isPublic(peer) { scope = .private }
        return true
    }
}
