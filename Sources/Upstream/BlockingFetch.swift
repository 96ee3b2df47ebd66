import CCurl
import Glibc
import HTTPModel

/// One blocking request, for a program with nothing else to do meanwhile, such as a command that calls the running
/// proxy. No address policy applies: the caller names the address. Any status is a response, and no redirect is
/// followed.
package struct BlockingFetch {
    package enum Content: Sendable {
        case none
        case bytes([UInt8])
        /// This many bytes of an open file, from its current position.
        case file(descriptor: Int32, length: Int64)
    }

    /// The part of a response that is known before its body.
    package struct Head: Sendable {
        package let status: Int
        /// The length of the body, if the response states it.
        package let length: Int64?
    }

    package enum Demand {
        case more
        /// Close the connection; that is not an error.
        case enough
    }

    package var url: String
    package var method = "GET"
    package var fields = HeaderFields()
    package var content = Content.none
    /// In seconds for the whole exchange; nil for no limit.
    package var timeout: Double? = 10
    /// Seconds without a byte in either direction.
    package var stallTimeout = 600
    /// Called at least four times a second, and after each piece; false ends the request with
    /// `UpstreamError.interrupted`.
    package var isWanted: () -> Bool = { true }
    /// Called when the last bytes of a file have been read, before they are sent: without them, the other side has
    /// nothing complete. False ends the request with `UpstreamError.interrupted`.
    package var mayComplete: () -> Bool = { true }

    package init(_ url: String) { self.url = url }

    /// Sends one GET.
    /// - Parameter timeout: seconds for the whole exchange.
    package static func get(url: String, timeout: Double) throws(UpstreamError) -> (status: Int, body: [UInt8]) {
        var fetch = BlockingFetch(url)
        fetch.timeout = timeout
        return try fetch.bytes()
    }

    /// Returns the response with its whole body.
    /// - Throws: `UpstreamError` if no response arrives, or only a part of it.
    package func bytes() throws(UpstreamError) -> (status: Int, body: [UInt8]) {
        var body: [UInt8] = []
        let head = try perform { _, piece in
            body.append(contentsOf: piece)
            return .more
        }
        return (head.status, body)
    }

    /// - Parameter receive: called with each piece of the body as it arrives, on this thread. The connection stays open
    ///   meanwhile.
    /// - Throws: `UpstreamError` if no response arrives, or only a part of it although more was wanted.
    @discardableResult
    package func perform(_ receive: @escaping (Head, UnsafeRawBufferPointer) -> Demand) throws(UpstreamError) -> Head {
        try perform { head, bytes, _ in receive(head, bytes) }
    }

    /// The same for a `receive` that takes long.
    /// - Parameter receive: its third argument tells, as long as it runs, whether the other side still has the
    ///   connection open.
    @discardableResult
    package func perform(
        _ receive: @escaping (Head, UnsafeRawBufferPointer, _ isOpen: @escaping () -> Bool) -> Demand
    ) throws(UpstreamError) -> Head {
        guard let url = UpstreamURL(url) else { throw .badURL(url) }
        let exchange = Exchange(content, receive: receive, isWanted: isWanted, mayComplete: mayComplete)
        // curl's callbacks use it unretained.
        defer { withExtendedLifetime(exchange) {} }
        setUp(exchange, url)
        return try exchange.perform(host: url.host)
    }

    private func setUp(_ exchange: Exchange, _ url: UpstreamURL) {
        let easy = exchange.easy
        var settings = UpstreamSettings()
        if let timeout {
            settings.connectTimeout = min(settings.connectTimeout, timeout)
            easy.set(CURLOPT_TIMEOUT_MS, max(1, Int(saturating: timeout * 1000)))
        } else {
            easy.set(CURLOPT_LOW_SPEED_LIMIT, 1)
            easy.set(CURLOPT_LOW_SPEED_TIME, stallTimeout)
        }
        easy.setUp(url: url.text, settings: settings)
        easy.set(
            UpstreamRequest(url: url.text, method: method == "HEAD" ? .head : .get, fields: fields), fields: fields,
            settings: settings)
        setUpContent(easy)
        exchange.installCallbacks()
    }

    private func setUpContent(_ easy: EasyHandle) {
        switch content {
        case .none: break
        case .bytes(let bytes):
            easy.set(CURLOPT_POST, 1)
            easy.set(CURLOPT_POSTFIELDSIZE, bytes.count)
            // This option copies the bytes at once.
            bytes.withUnsafeBytes {
                easy.set(CURLOPT_COPYPOSTFIELDS, pointer: UnsafeMutableRawPointer(mutating: $0.baseAddress))
            }
        case .file(_, let length):
            easy.set(CURLOPT_UPLOAD, 1)
            reel_curl_set_off(easy.curl, CURLOPT_INFILESIZE_LARGE, curl_off_t(length))
        }
        if method != "GET" && method != "HEAD" { easy.set(CURLOPT_CUSTOMREQUEST, method) }
    }
}

extension BlockingFetch {
    /// The context of curl's callbacks during one request.
    private final class Exchange {
        let easy = EasyHandle()
        private let content: BlockingFetch.Content
        private let receive: (BlockingFetch.Head, UnsafeRawBufferPointer, @escaping () -> Bool) -> BlockingFetch.Demand
        private let isWanted: () -> Bool
        private let mayComplete: () -> Bool
        private var left: Int64 = 0
        private var head: BlockingFetch.Head?
        private var hasEnough = false
        private var isUnwanted = false
        private var readError: Int32?
        /// curl names the one it uses (CURLINFO_ACTIVESOCKET) only at the end. There are several if the host has
        /// several addresses.
        private var sockets: [Int32] = []

        init(
            _ content: BlockingFetch.Content,
            receive:
                @escaping (BlockingFetch.Head, UnsafeRawBufferPointer, @escaping () -> Bool) -> BlockingFetch.Demand,
            isWanted: @escaping () -> Bool, mayComplete: @escaping () -> Bool
        ) {
            self.content = content
            self.receive = receive
            self.isWanted = isWanted
            self.mayComplete = mayComplete
            if case .file(_, let length) = content { left = length }
        }

        func installCallbacks() {
            let context = Unmanaged.passUnretained(self).toOpaque()
            easy.set(CURLOPT_WRITEDATA, pointer: context)
            reel_curl_set_data_callback(easy.curl, CURLOPT_WRITEFUNCTION) { bytes, size, count, context in
                Exchange.of(context).received(UnsafeRawBufferPointer(start: bytes, count: size * count))
                    ? size * count : 0
            }
            if case .file = content {
                easy.set(CURLOPT_READDATA, pointer: context)
                reel_curl_set_data_callback(easy.curl, CURLOPT_READFUNCTION) { bytes, size, count, context in
                    Exchange.of(context).give(UnsafeMutableRawBufferPointer(start: bytes, count: size * count))
                }
            }
            easy.set(CURLOPT_OPENSOCKETDATA, pointer: context)
            reel_curl_set_opensocket(easy.curl) { context, _, address in
                Exchange.of(context).openSocket(to: address!)
            }
            easy.set(CURLOPT_NOPROGRESS, 0)
            easy.set(CURLOPT_XFERINFODATA, pointer: context)
            reel_curl_set_progress(easy.curl) { context, _, _, _, _ in Exchange.of(context).continues() ? 0 : 1 }
        }

        private static func of(_ context: UnsafeMutableRawPointer?) -> Exchange {
            Unmanaged<Exchange>.fromOpaque(context!).takeUnretainedValue()
        }

        func perform(host: String) throws(UpstreamError) -> BlockingFetch.Head {
            let code = transfer()
            if hasEnough, let head { return head }
            if isUnwanted { throw .interrupted }
            if let readError { throw .broken(detail: "the file cannot be read: \(String(errno: readError))") }
            let head = currentHead
            guard code == CURLE_OK else {
                let phase: UpstreamError.Phase = head.status > 0 ? .body : easy.isConnected ? .response : .connect
                throw UpstreamError(code, detail: easy.detail, host: host, phase: phase)
            }
            return head
        }

        /// Like `curl_easy_perform`, which reports progress only once a second.
        private func transfer() -> CURLcode {
            guard let multi = curl_multi_init() else { fatalError("curl_multi_init: out of memory") }
            defer { curl_multi_cleanup(multi) }
            let added = curl_multi_add_handle(multi, easy.curl)
            precondition(added == CURLM_OK, "curl_multi_add_handle: \(String(cString: curl_multi_strerror(added)))")
            defer { curl_multi_remove_handle(multi, easy.curl) }
            var running: Int32 = 1
            while running > 0 {
                var code = curl_multi_perform(multi, &running)
                if code == CURLM_OK, running > 0 { code = curl_multi_poll(multi, nil, 0, Self.pollMilliseconds, nil) }
                guard code == CURLM_OK else {
                    return code == CURLM_OUT_OF_MEMORY ? CURLE_OUT_OF_MEMORY : CURLE_BAD_FUNCTION_ARGUMENT
                }
            }
            var left: Int32 = 0
            while let message = curl_multi_info_read(multi, &left) {
                if message.pointee.msg == CURLMSG_DONE { return message.pointee.data.result }
            }
            return CURLE_FAILED_INIT
        }

        private static let pollMilliseconds: Int32 = 200

        private var currentHead: BlockingFetch.Head {
            var status = 0
            reel_curl_get_long(easy.curl, CURLINFO_RESPONSE_CODE, &status)
            var length: curl_off_t = -1
            reel_curl_get_off(easy.curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length)
            return BlockingFetch.Head(status: status, length: length >= 0 ? Int64(length) : nil)
        }

        private func received(_ bytes: UnsafeRawBufferPointer) -> Bool {
            guard continues() else { return false }
            let head = head ?? currentHead
            self.head = head
            if case .enough = receive(head, bytes, { [self] in isOpen }) { hasEnough = true }
            return !hasEnough
        }

        /// Whether the other side has kept the connection open, as far as this machine knows. Bytes it has already sent
        /// do not matter.
        private var isOpen: Bool { sockets.contains(where: Self.isOpen) }

        private func openSocket(to address: UnsafeMutablePointer<curl_sockaddr>) -> curl_socket_t {
            let flags = Int32(SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue) // no trap: constants
            let made = socket(address.pointee.family, address.pointee.socktype | flags, address.pointee.protocol)
            if made >= 0 { sockets.append(made) }
            return made
        }

        /// False for sockets that were closed after an attempt, or never connected.
        private static func isOpen(_ socket: Int32) -> Bool {
            // no trap: the size of a structure
            var (peer, length) = (sockaddr_storage(), socklen_t(MemoryLayout<sockaddr_storage>.size))
            let isConnected = withUnsafeMutableBytes(of: &peer) {
                getpeername(socket, $0.assumingMemoryBound(to: sockaddr.self).baseAddress!, &length) == 0
            }
            var state = pollfd(fd: socket, events: pollClosed, revents: 0)
            while isConnected {
                let count = poll(&state, 1, 0)
                if count < 0 && errno == EINTR { continue }
                // `poll` reports an error or a hang-up unasked.
                return count == 0
            }
            return false
        }

        /// POLLRDHUP of Linux, which glibc declares only with _GNU_SOURCE.
        private static let pollClosed: Int16 = 0x2000

        /// A file that has become shorter ends the transfer: curl has already announced its length.
        private func give(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
            guard case .file(let descriptor, _) = content, left > 0 else { return 0 }
            while true {
                let count = read(descriptor, buffer.baseAddress, Int(min(Int64(buffer.count), left)))
                if count < 0 && errno == EINTR { continue }
                guard count > 0 else {
                    readError = count < 0 ? errno : EIO
                    return Int(CURL_READFUNC_ABORT)
                }
                left -= Int64(count) // no trap: at most `left` was read
                if left == 0 && !mayComplete() {
                    isUnwanted = true
                    return Int(CURL_READFUNC_ABORT)
                }
                return count
            }
        }

        private func continues() -> Bool {
            if !isUnwanted { isUnwanted = !isWanted() }
            return !isUnwanted
        }
    }
}
