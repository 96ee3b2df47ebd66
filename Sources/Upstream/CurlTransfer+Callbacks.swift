import CCurl
import CachePolicy
import EventIO
import Glibc
import HTTPModel

/// Callbacks from curl, on the loop: they must not add, remove or pause handles.
extension CurlTransfer {
    /// Tells curl that not all bytes were handled, so that it gives up this transfer.
    private static let giveUp = 0

    fileprivate func received(_ bytes: UnsafeRawBufferPointer) -> Int {
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
            body.received += Int64(bytes.count) // no trap: what has come
            return bytes.count
        case .redirect:
            return hop.discard(bytes.count) ? bytes.count : Self.giveUp
        case .waiting, .queued, .resolving, .head, .ended:
            return Self.giveUp
        }
    }

    private func pauseInCurl() -> Int {
        body.flow.isHeldInCurl = true
        return Int(CURL_WRITEFUNC_PAUSE)
    }

    fileprivate func fillUpload(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
        guard stage != .ended, let delegate else { return Int(CURL_READFUNC_ABORT) }
        let step = delegate.transfer(self, fillUpload: buffer)
        guard stage != .ended else { return Int(CURL_READFUNC_ABORT) }
        switch step {
        case .bytes(let count):
            noteSign()
            return count
        case .wait:
            upload.flow.isHeldInCurl = true
            lookLaterWhetherAnswered()
            return Int(CURL_READFUNC_PAUSE)
        case .end:
            noteSign()
            return 0
        }
    }

    fileprivate func receivedLine(_ line: UnsafeRawBufferPointer) -> Int {
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
        if !hop.way.isDirect, let url = route?.url, let client {
            scope.add(hop.way.scope(of: url, fields, client.policy.value))
        }
        if !hop.cookies.isEmpty { scope.add(.unknown) } // what they opened is for no page of another site
        hop.takeCookies(fields, &route, request.cookies)
        if request.method.followsRedirects, let location = fields["Location"],
            [301, 302, 303, 307, 308].contains(status)
        {
            (hop.location, hop.redirectStatus, hop.redirectFields) = (location, status, fields)
            stage = .redirect
            followSoon()
            return true
        }
        if let denial = hop.way.denial(status, of: route?.url) {
            hop.fault = denial
            return false
        }
        do throws(UpstreamError) {
            let head = UpstreamHead(
                status: status, fields: fields, finalURL: route?.url.text ?? request.url,
                contentLength: try fields.declaredLength(),
                scope: scope, hasMoved: route?.hasMoved ?? false, receivedAt: Int64(time(nil)))
            stage = .body
            upload.isRefused = status >= 300
            // After an error answer, curl stops sending the body, and ends at once if it is not paused.
            if upload.isRefused { resumeUpload() } else if upload.flow.isHeldInCurl { lookLaterWhetherAnswered() }
            delegate?.transfer(self, receivedHead: head)
            return stage != .ended
        } catch {
            hop.fault = error
            return false
        }
    }

    fileprivate func openSocket(to address: UnsafeMutablePointer<curl_sockaddr>) -> curl_socket_t {
        guard stage != .ended, let client else { return CURL_SOCKET_BAD }
        return hop.openSocket(to: address, of: host, client)
    }

    /// Called before each request is sent.
    fileprivate func mayRequest(_ ends: OriginSockets.Ends) -> Bool {
        guard let client, hop.mayRequest(ends, of: host, client.policy.value, client) else { return false }
        if hop.isPrivate { scope = .private }
        if !hop.sockets.isEmpty, hop.addresses.first != ends.address,
            let name = route.flatMap({ hop.way.peer(of: $0.url).name })
        {
            client.resolver.connected(name, at: ends.address)
        }
        return true
    }
}

extension EasyHandle {
    func setCallbacks(_ transfer: CurlTransfer, _ client: UpstreamClient) {
        // Unretained: the client holds the transfer for as long as curl has its handle.
        let context = Unmanaged.passUnretained(transfer).toOpaque()
        set(CURLOPT_PRIVATE, pointer: context)
        set(CURLOPT_WRITEDATA, pointer: context)
        set(CURLOPT_HEADERDATA, pointer: context)
        set(CURLOPT_OPENSOCKETDATA, pointer: context)
        set(CURLOPT_PREREQDATA, pointer: context)
        if transfer.request.content != .none {
            set(CURLOPT_READDATA, pointer: context)
            reel_curl_set_data_callback(curl, CURLOPT_READFUNCTION) { bytes, size, count, context in
                Unmanaged<CurlTransfer>.fromOpaque(context!)._withUnsafeGuaranteedRef {
                    $0.fillUpload(UnsafeMutableRawBufferPointer(start: bytes, count: size * count))
                }
            }
        }
        reel_curl_set_data_callback(curl, CURLOPT_WRITEFUNCTION) { bytes, size, count, context in
            Unmanaged<CurlTransfer>.fromOpaque(context!)._withUnsafeGuaranteedRef {
                $0.received(UnsafeRawBufferPointer(start: bytes, count: size * count))
            }
        }
        reel_curl_set_data_callback(curl, CURLOPT_HEADERFUNCTION) { bytes, size, count, context in
            Unmanaged<CurlTransfer>.fromOpaque(context!)._withUnsafeGuaranteedRef {
                $0.receivedLine(UnsafeRawBufferPointer(start: bytes, count: size * count))
            }
        }
        reel_curl_set_opensocket(curl) { context, _, address in
            Unmanaged<CurlTransfer>.fromOpaque(context!)._withUnsafeGuaranteedRef { $0.openSocket(to: address!) }
        }
        reel_curl_set_prereq(curl) { context, address, _, port, localPort in
            let ends = OriginSockets.Ends(address: String(cString: address!), port: port, localPort: localPort)
            return Unmanaged<CurlTransfer>.fromOpaque(context!)._withUnsafeGuaranteedRef {
                $0.mayRequest(ends) ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT
            }
        }
        // Also called when the connection is closed long after this exchange: by the client, which outlives it.
        set(CURLOPT_CLOSESOCKETDATA, pointer: Unmanaged.passUnretained(client).toOpaque())
        reel_curl_set_closesocket(curl) { context, socket in
            Unmanaged<UpstreamClient>.fromOpaque(context!)._withUnsafeGuaranteedRef { $0.closed(socket) }
            return close(socket)
        }
    }
}
