import Foundation

/// An HTTP/1.1 origin on a port of 127.0.0.1 that does what a test says, and writes down what it was asked and what it
/// sent. Every connection has a thread; keep-alive and pipelining work as in a real server.
///
/// | term | meaning |
/// |---|---|
/// | path | a request target; a target with a query that nobody serves belongs to its path without it |
/// | behaviour | what the origin does with the requests for a path |
/// | gate | a place where responses wait: before the head, before the body, or inside it (`stallAfter`) |
/// | release | all responses that have begun go through all their gates, and the path's gates are open from then on |
///
/// A client that closes is noticed at gates and while the body is paced or sent. A client that only ends its own
/// direction (`shutdown(SHUT_WR)`) counts as one that closed.
package final class ScriptedOrigin: Sendable {
    package let port: Int
    private let listener: Socket
    /// Keeps the port while the origin is stopped: else an origin of another test could be given it.
    private let place: Socket
    private let state: Monitor<OriginState>

    /// Begins to listen.
    /// - Parameters:
    ///   - port: 0 for any that is free; that of a stopped origin brings it back.
    ///   - sendBuffer: bytes that the kernel takes from each connection before the client reads (it may double them).
    package init(port: Int = 0, sendBuffer: Int = 128 * 1024) throws {
        raiseDescriptorLimit()
        state = Monitor(OriginState(bell: try Bell()))
        place = try Socket.bound(to: port)
        self.port = try place.port()
        do { listener = try Socket.listening(port: self.port, sendBuffer: sendBuffer) } catch {
            place.close()
            throw error
        }
        try startThread { [listener, state] in acceptConnections(listener, state) }
    }

    deinit {
        stop()
        place.close()
    }

    /// Refuses connections from now on and ends those that are open, also in the middle of a response. Returns when all
    /// is ended. The log stays.
    package func stop() {
        state.update {
            // Once: after that the descriptor may be another's.
            if !$0.isStopped { listener.shutDown() }
            $0.stop()
        }
        // Only a fault in the origin itself lets this fail, and then the test has what it waits for from elsewhere.
        try? state.wait(for: "the origin's threads to end") { $0.connections.isEmpty && !$0.isListening ? () : nil }
    }

    /// `http://127.0.0.1:port/path`
    /// - Parameter host: another name of this machine, such as `localhost`.
    package func url(_ path: String, host: String = "127.0.0.1") -> String { "http://\(host):\(port)\(path)" }

    // MARK: - The script

    /// Serves `media` at `path`. What else was scripted for the path stays.
    package func serve(
        _ path: String, _ media: Media, etag: String? = "\"v1\"", lastModified: String? = nil,
        contentType: String? = "video/mp4"
    ) {
        script(path) {
            ($0.media, $0.body) = (media, nil)
            ($0.etag, $0.lastModified, $0.contentType) = (etag, lastModified, contentType)
        }
    }

    /// Serves `bytes` at `path`, for what has meaning, such as playlists.
    package func serve(
        _ path: String, bytes: [UInt8], etag: String? = "\"v1\"", lastModified: String? = nil,
        contentType: String? = "application/octet-stream"
    ) {
        script(path) {
            ($0.media, $0.body) = (nil, bytes)
            ($0.etag, $0.lastModified, $0.contentType) = (etag, lastModified, contentType)
        }
    }

    /// Changes the behaviour of `path` for the requests that arrive from now on. `change` must not call the origin.
    package func script(_ path: String, _ change: (inout Behaviour) -> Void) {
        state.update {
            change(&$0.paths[path, default: OriginState.Path()].behaviour)
            $0.ringBell()
        }
    }

    /// Bodies of `path` wait before their first byte; their heads are sent.
    package func hold(_ path: String) {
        script(path) { $0.holdBody = true }
    }

    /// Responses of `path` wait before their heads.
    package func holdHeads(_ path: String) {
        script(path) { $0.holdHead = true }
    }

    /// Opens the gates of `path`, `stallAfter` included, for responses that wait, that have begun, and that will.
    package func release(_ path: String) {
        state.update { state in
            state.paths[path]?.release()
            state.ringBell()
        }
    }

    /// Releases every path.
    package func releaseAll() {
        state.update { state in
            for path in state.paths.keys { state.paths[path]?.release() }
            state.ringBell()
        }
    }

    /// Stops the clock by which its responses are dated.
    /// - Parameter time: seconds since 1970.
    package func setClock(_ time: Int64) {
        state.update { $0.clock = time }
    }

    // MARK: - The log

    /// The log as it is now.
    package var snapshot: Snapshot { state.read(\.snapshot) }

    /// The requests for `path` in the order of their arrival.
    package func requests(_ path: String) -> [OriginRequest] { snapshot.requests(path) }

    /// How many requests for `path` have arrived. Of all methods.
    package func requestCount(_ path: String) -> Int { snapshot.requestCount(path) }

    /// Body bytes sent for `path` in all responses.
    package func bytesSent(_ path: String) -> Int64 { snapshot.bytesSent(path) }

    /// Waits until at least `count` requests for `path` have arrived.
    /// - Throws: `DeadlinePassed` with the log.
    package func waitForRequests(_ path: String, count: Int, within patience: Duration = .patience) throws {
        try waitUntil("\(count) requests for \(path)", within: patience) { $0.requestCount(path) >= count }
    }

    /// Waits until `predicate` holds of the log. It is asked now and after each change, under no lock.
    /// - Throws: `DeadlinePassed` with `what` and the log.
    package func waitUntil(
        _ what: String, within patience: Duration = .patience, _ predicate: @Sendable (Snapshot) -> Bool
    ) throws {
        let end = ContinuousClock.now + patience
        var seen: Int?
        while true {
            let (version, snapshot) = try nextState(after: seen, waitingFor: what, until: end)
            if predicate(snapshot) { return }
            seen = version
        }
    }

    private func nextState(after seen: Int?, waitingFor what: String, until end: ContinuousClock.Instant) throws -> (
        Int, Snapshot
    ) {
        do {
            return try state.wait(for: "\(what) at the origin", within: end - .now) {
                $0.version == seen ? nil : ($0.version, $0.snapshot)
            }
        } catch var error as DeadlinePassed {
            error.instead = snapshot.requests.map(\.description).joined(separator: "\n")
            throw error
        }
    }
}

extension OriginState.Path {
    mutating func release() {
        releases += 1
        (behaviour.holdHead, behaviour.holdBody, behaviour.stallAfter) = (false, false, nil)
    }
}

/// Accepts until the listener is shut down, and closes it.
private func acceptConnections(_ listener: Socket, _ state: Monitor<OriginState>) {
    while !state.read(\.isStopped) {
        do {
            try begin(listener.accepted(), state)
        } catch {
            // ECONNABORTED and the end of the listener are no faults; without descriptors or threads no test means
            // anything.
            let isFault = [EMFILE, ENFILE, EAGAIN, ENOMEM].contains((error as? SystemError)?.code)
            precondition(!isFault, "the origin cannot take a connection: \(error)")
        }
    }
    listener.close()
    state.update { $0.isListening = false }
}

private func begin(_ socket: Socket, _ state: Monitor<OriginState>) throws {
    guard let number = state.update({ $0.admit(socket) }) else { return socket.close() }
    try startThread { OriginConnection(number: number, socket: socket, state: state).run() }
}

/// Lifts the soft limit of open files to the hard one: each connection of a test has both its ends in this process.
private func raiseDescriptorLimit() {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0, limit.rlim_cur < limit.rlim_max else {
        return
    }
    limit.rlim_cur = limit.rlim_max
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
}
