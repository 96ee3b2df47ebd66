import Foundation

/// One connection of a `ScriptedOrigin`, served by its own thread from begin to end.
struct OriginConnection {
    /// Why a response ended before its end.
    private enum Ending: Error {
        /// The client closed, or the origin was stopped.
        case left
        /// The script says so.
        case cut
    }

    /// `POLLRDHUP`, which glibc does not show to Swift: the peer has closed, or will send no more. It comes also while
    /// requests of a pipeline lie unread.
    private static let peerClosed: Int16 = 0x2000

    let number: Int
    let socket: Socket
    let state: Monitor<OriginState>

    /// Serves until either side ends the connection, and closes it.
    func run() {
        var reader = OriginRequestReader(socket)
        var continues = true
        while continues, let request = (try? reader.next()) ?? nil { continues = serve(request, &reader) }
        socket.discardInput()
        state.update { $0.forgetConnection(number) }
        socket.close()
    }

    /// Whether the connection goes on.
    private func serve(_ request: OriginRequestHead, _ reader: inout OriginRequestReader) -> Bool {
        let isEarly = state.read { $0.answersEarly(request) }
        var request = request
        if !isEarly {
            guard let body = (try? reader.readBody(of: request)) ?? nil else { return false }
            request.body = body
        }
        let (continues, index) = serve(request)
        guard isEarly, continues else { return continues }
        guard let body = (try? reader.readBody(of: request)) ?? nil else { return false }
        state.update { $0.note(index) { $0.body = body } }
        return true
    }

    private func serve(_ request: OriginRequestHead) -> (continues: Bool, index: Int) {
        let admission = state.update { $0.admit(request, connection: number) }
        do {
            try answer(admission)
            return (!admission.response.closes, admission.index)
        } catch Ending.cut {
            if admission.behaviour.cutsWithReset { socket.resetOnClose() } else { socket.shutDown() }
        } catch {
            state.update { state in
                // What the origin itself ended was not aborted by the client.
                let isAborted = !state.isStopped
                state.note(admission.index) { ($0.finished, $0.aborted) = (false, isAborted) }
            }
        }
        return (false, admission.index)
    }

    /// Writes into the log before it sends: who has read the end of a response finds it in the log as finished.
    private func answer(_ admission: OriginState.Admission) throws {
        let response = admission.response
        if let latency = admission.behaviour.latency { try pause(until: .now + latency) }
        for (status, fields) in admission.behaviour.interims {
            let lines = fields.map { "\($0): \($1)\r\n" }.joined()
            try socket.send("HTTP/1.1 \(status) Interim\r\n\(lines)\r\n")
        }
        try waitForRelease(admission, isHeld: \.holdHead)
        if admission.isDropped { throw Ending.cut }
        if let raw = admission.raw {
            note(admission) { $0.finished = true }
            try raw.withUnsafeBytes { try socket.send($0) }
            throw Ending.cut
        }
        note(admission) {
            $0.status = response.status
            $0.finished = !response.hasBody
        }
        try socket.send(response.head)
        if response.hasBody { try sendBody(admission) }
    }

    private func sendBody(_ admission: OriginState.Admission) throws {
        var schedule = BodySchedule(admission)
        let begin = ContinuousClock.now
        while true {
            let offset = admission.response.body.lowerBound + schedule.sent
            switch schedule.next() {
            case .send(let count):
                try sendPiece(admission, offset..<offset + Int64(count), isLast: schedule.isOver)
                if let due = schedule.due { try pause(until: begin + due) }
            case .stall: try waitForRelease(admission) { $0.holdBody || $0.stallAfter != nil }
            case .cut: throw Ending.cut
            case .end: return try sendEnd(admission)
            }
        }
    }

    private func sendPiece(_ admission: OriginState.Admission, _ range: Range<Int64>, isLast: Bool) throws {
        if try waitForEvent(within: .zero) { throw Ending.left }
        let isChunked = admission.response.framing == .chunked
        note(admission) {
            $0.bodyBytesSent += Int64(range.count)
            $0.finished = isLast && !isChunked
        }
        do {
            if isChunked { try socket.send(String(range.count, radix: 16) + "\r\n") }
            try admission.response.content.withBytes(range) { try socket.send($0) }
            if isChunked { try socket.send("\r\n") }
        } catch {
            note(admission) { $0.bodyBytesSent -= Int64(range.count) }
            throw error
        }
    }

    private func sendEnd(_ admission: OriginState.Admission) throws {
        note(admission) { $0.finished = true }
        if admission.response.framing == .chunked { try socket.send("0\r\n\r\n") }
    }

    private func note(_ admission: OriginState.Admission, _ change: (inout OriginRequest) -> Void) {
        state.update { $0.note(admission.index, change) }
    }

    // MARK: - Waiting

    /// Waits until the path is released, or is no longer held.
    private func waitForRelease(_ admission: OriginState.Admission, isHeld: (ScriptedOrigin.Behaviour) -> Bool) throws {
        guard isHeld(admission.behaviour) else { return }
        while true {
            // Both at one moment: a gate that opens later rings this very bell.
            let (path, bell) = state.read { ($0.paths[admission.path], $0.bell) }
            guard let path, path.releases == admission.releases, isHeld(path.behaviour) else { return }
            if try waitForEvent(within: nil, or: bell) { throw Ending.left }
        }
    }

    /// Lets time pass, for pace and latency alone.
    private func pause(until end: ContinuousClock.Instant) throws {
        if ContinuousClock.now < end, try waitForEvent(within: end - .now) { throw Ending.left }
    }

    /// Waits for the client's leaving (true), for the bell, or for the end of `patience` (false).
    private func waitForEvent(within patience: Duration?, or bell: Bell? = nil) throws -> Bool {
        var entries = [pollfd(fd: socket.descriptor, events: Self.peerClosed, revents: 0)]
        if let bell { entries.append(pollfd(fd: bell.descriptor, events: Int16(POLLIN), revents: 0)) }
        // ARC may let go of an object after its last use, and poll uses only the number.
        _ = try withExtendedLifetime(bell) { try pollEvents(&entries, within: patience) }
        return entries[0].revents != 0
    }
}

extension BodySchedule {
    init(_ admission: OriginState.Admission) {
        let behaviour = admission.behaviour
        self.init(
            length: Int64(admission.response.body.count), cutAfter: admission.cutAfter,
            stallAfter: behaviour.holdBody ? 0 : behaviour.stallAfter, bytesPerSecond: behaviour.bytesPerSecond)
    }
}

extension OriginResponse.Content {
    func withBytes(_ range: Range<Int64>, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        switch self {
        case .media(let media): try media.bytes(range).withUnsafeBytes(body)
        case .bytes(let bytes): try bytes[Int(range.lowerBound)..<Int(range.upperBound)].withUnsafeBytes(body)
        }
    }
}
