import Foundation

/// All that a `ScriptedOrigin` and the threads of its connections share.
struct OriginState: Sendable {
    /// By which responses are dated, in seconds since 1970; nil for the time of this machine.
    var clock: Int64?
    struct Path: Sendable {
        var behaviour = ScriptedOrigin.Behaviour()
        var requestCount = 0
        /// Whether its link has expired.
        var hasExpired = false
        /// How often the path was released. A response is held only as long as this is what it was at its request.
        var releases = 0
    }

    /// A request let in: what to answer, and where to write down what becomes of it.
    struct Admission: Sendable {
        let index: Int
        let path: String
        let releases: Int
        let behaviour: ScriptedOrigin.Behaviour
        let response: OriginResponse
        let cutAfter: Int64?
        let isDropped: Bool
        /// What is sent in place of the response.
        let raw: [UInt8]?
    }

    var paths: [String: Path] = [:]
    private(set) var log: [OriginRequest] = []
    /// The open connections by number. A socket is closed only after it has left this table.
    private(set) var connections: [Int: Socket] = [:]
    private(set) var connectionCount = 0
    private(set) var isStopped = false
    var isListening = true
    /// Rung when a gate may have opened.
    private(set) var bell: Bell
    /// Counts changes of the log.
    private(set) var version = 0

    init(bell: Bell) {
        self.bell = bell
    }

    var snapshot: ScriptedOrigin.Snapshot {
        ScriptedOrigin.Snapshot(requests: log, connectionCount: connectionCount, openConnections: connections.count)
    }

    // MARK: - Connections

    /// Takes in a connection and numbers it, or `nil` when the origin has stopped.
    mutating func admit(_ socket: Socket) -> Int? {
        if isStopped { return nil }
        defer { connectionCount += 1 }
        connections[connectionCount] = socket
        version += 1
        return connectionCount
    }

    mutating func forgetConnection(_ number: Int) {
        connections[number] = nil
        version += 1
    }

    mutating func stop() {
        isStopped = true
        for socket in connections.values { socket.shutDown() }
    }

    /// Wakes the responses that wait at a gate, to look at it again.
    mutating func ringBell() {
        guard let next = try? Bell() else { fatalError("no descriptor left for a pipe: raise ulimit -n") }
        bell.ring()
        bell = next
    }

    // MARK: - Requests

    func answersEarly(_ head: OriginRequestHead) -> Bool { paths[head.target]?.behaviour.answersEarly == true }

    mutating func admit(_ head: OriginRequestHead, connection: Int) -> Admission {
        let path = paths[head.target] == nil ? head.targetWithoutQuery : head.target
        let behaviour = takeBehaviour(path)
        let response = OriginResponse(to: head, behaviour, time: clock.map { time_t($0) } ?? time(nil))
        let (cutAfter, isDropped) = takeCut(path, response)
        let range = head.range?.resolved(size: behaviour.content?.size)
        log.append(
            OriginRequest(
                method: head.method, target: head.target, path: path, headers: head.headers, body: head.body,
                range: range,
                connection: connection))
        version += 1
        return Admission(
            index: log.count - 1, path: path, releases: paths[path]?.releases ?? 0, behaviour: behaviour,
            response: response,
            cutAfter: cutAfter, isDropped: isDropped,
            raw: behaviour.raw.flatMap { $0.starts(with: "HTTP/1.1 206".utf8) && head.range == nil ? nil : $0 })
    }

    mutating func note(_ index: Int, _ change: (inout OriginRequest) -> Void) {
        change(&log[index])
        version += 1
    }

    /// The path's behaviour for a request that has just arrived, with all that is counted applied and counted down.
    private mutating func takeBehaviour(_ path: String) -> ScriptedOrigin.Behaviour {
        var behaviour = paths[path, default: Path()].behaviour
        if let change = behaviour.changeAfterRequests, paths[path, default: Path()].requestCount >= change.count {
            (behaviour.media, behaviour.etag) = (change.media, change.etag)
        }
        behaviour.readFile()
        let count = paths[path, default: Path()].requestCount
        if !behaviour.versions.isEmpty {
            let number = count % behaviour.versions.count
            (behaviour.media, behaviour.etag) = (
                behaviour.versions[number], behaviour.etag.map { String($0.dropLast()) + "-\(number)\"" }
            )
        }
        if !behaviour.redirects.isEmpty { behaviour.redirect = behaviour.redirects[count % behaviour.redirects.count] }
        if behaviour.status != nil, let times = behaviour.statusTimes {
            if times <= 0 { behaviour.clearStatus() }
            paths[path]?.behaviour.statusTimes = max(0, times - 1)
        }
        if paths[path]?.hasExpired == true { (behaviour.status, behaviour.body) = (403, Array("expired\n".utf8)) }
        paths[path]?.requestCount += 1
        return behaviour
    }

    /// Where the response is cut, if it is, and whether it is dropped without an answer.
    private mutating func takeCut(_ path: String, _ response: OriginResponse) -> (after: Int64?, isDropped: Bool) {
        guard let behaviour = paths[path]?.behaviour else { return (nil, false) }
        let length = Int64(response.body.count)
        if let limit = behaviour.expiresAfter, response.hasBody, length > limit, paths[path]?.hasExpired == false {
            paths[path]?.hasExpired = true
            return (limit, false)
        }
        guard behaviour.cutTimes > 0 else { return (nil, false) }
        // Cut at its very end, a chunked body still lacks its last chunk.
        let cut = behaviour.cutAfter.flatMap {
            response.hasBody && ($0 < length || $0 == length && response.framing == .chunked) ? $0 : nil
        }
        if behaviour.closesBeforeHead || cut != nil { paths[path]?.behaviour.cutTimes -= 1 }
        return (cut, behaviour.closesBeforeHead)
    }
}

extension ScriptedOrigin.Behaviour {
    fileprivate mutating func readFile() {
        guard let file else { return }
        body = (try? Data(contentsOf: URL(fileURLWithPath: file))).map { [UInt8]($0) }
        var about = stat()
        if isFileDated, stat(file, &about) == 0 { lastModified = HTTPDate.string(about.st_mtim.tv_sec) }
    }

    /// Takes the scripted status back, with all that was said along with it.
    fileprivate mutating func clearStatus() {
        (status, retryAfter) = (nil, nil)
        if media != nil { body = nil }
    }
}
