import Glibc
import TestSupport

/// A client of the simulated proxy: it requests films and parts of them, reads at its own pace, pauses, seeks and
/// leaves, and compares each byte with what the version that the head names has at that place.
final class Player {
    private let world: World
    private let number: Int
    private var socket: Int32 = -1
    private var request: Request?
    private var decoder = ResponseDecoder()
    private var requestsLeft: Int
    private var isQuiet = false
    private var isThinking = false

    /// What is being received.
    private struct Request {
        let film: Film
        let method: String
        /// The value of `Range`.
        let range: String?
        let fields: [String]
        /// Whether it has to be answered completely.
        let isQuiet: Bool
        let began: UInt64
        /// RFC 9111 §4.4: the versions before this one had been invalidated when it was sent.
        let oldest: Int
        /// Bytes read in one go, and seconds between.
        let piece: Int
        let interval: Double
        /// It leaves after so many bytes.
        let leaves: Int64?
        /// Pauses once after so many bytes.
        var pausesAt: Int64?
        /// How long it waits for anything.
        var patience: Double
        var lastNews: UInt64
        var head: RawClient.ResponseHead?
        /// The versions that all bytes so far can be of.
        var candidates: [Film.Version] = []
        var offset: Int64 = 0
        var end: Int64?
        var received: Int64 = 0
    }

    init(_ world: World, number: Int, requests: Int) {
        (self.world, self.number, requestsLeft) = (world, number, requests)
    }

    deinit {
        countUnread()
        hangUp()
    }

    /// The proxy takes what it has given to the socket for read.
    private func countUnread() {
        var count: Int32 = 0
        if let request, socket >= 0, ioctl(socket, UInt(FIONREAD), &count) == 0 {
            request.film.received += Int64(count)
        }
    }

    private var schedule: Schedule { world.schedule }

    /// Whether it has ended all that it was to do.
    var hasEnded: Bool { requestsLeft == 0 && request == nil && !isThinking }

    func start() { thinkThenRequest() }

    /// Requests whole films only, and waits for their ends.
    func becomeQuiet(requests: Int) {
        isQuiet = true
        requestsLeft = requests
        if request == nil, !isThinking { thinkThenRequest() }
    }

    private func later(_ seconds: Double, _ body: @escaping () throws -> Void) {
        schedule.after(seconds) { [self] in
            do { try body() } catch { world.failed("player \(number): \(error)") }
        }
    }

    private func thinkThenRequest() {
        guard requestsLeft > 0 else { return hangUp() }
        requestsLeft -= 1
        isThinking = true
        later(schedule.pick([0, 0, 0.01, 0.3, 2])) { [self] in try begin() }
    }

    func hangUp() {
        guard socket >= 0 else { return }
        close(socket)
        socket = -1
        decoder = ResponseDecoder()
    }

    // MARK: Requesting

    private func begin() throws {
        isThinking = false
        if socket < 0 || schedule.chance(0.3) {
            hangUp()
            socket = try world.connect()
        }
        let film = schedule.pick(world.origin.films), length = film.current.length
        let method = isQuiet || schedule.chance(0.9) ? "GET" : schedule.pick(["HEAD", "POST"])
        var fields: [String] = []
        if !isQuiet {
            if schedule.chance(0.05) { fields.append("Cache-Control: no-cache") }
            if schedule.chance(0.05), let tag = film.tag(schedule.pick(film.versions)) {
                fields.append("If-None-Match: \(tag)")
            }
        }
        if method == "POST" { fields.append("Content-Length: 0") }
        let range = isQuiet || schedule.chance(0.4) || method != "GET" ? nil : makeRange(length)
        if let range {
            fields.append("Range: \(range)")
            if schedule.chance(0.1), let tag = film.tag(schedule.pick(film.versions)) {
                fields.append("If-Range: \(tag)")
            }
        }
        request = Request(
            film: film, method: method, range: range, fields: fields, isQuiet: isQuiet, began: schedule.now,
            oldest: film.oldest,
            piece: Int(schedule.pick([isQuiet ? 4000 : 1000, 16_384, 65_536, 262_144])),
            interval: schedule.pick([0.001, 0.01, 0.05]),
            leaves: isQuiet || schedule.chance(0.6) ? nil : schedule.pick(0...length),
            pausesAt: isQuiet || schedule.chance(0.8) ? nil : schedule.pick(0...length),
            patience: isQuiet ? 300 : schedule.pick([1, 20, 60]), lastNews: schedule.now)
        world.note("player \(number): \(method) \(film.name) \(fields.joined(separator: ", "))")
        let text =
            ([
                "\(method) \(method == "POST" ? "/mount/" : "/http/origin.test/")\(film.name) HTTP/1.1",
                "Host: localhost",
            ] + fields + ["", ""])
            .joined(separator: "\r\n")
        guard send(socket, text, text.utf8.count, Int32(MSG_NOSIGNAL)) == text.utf8.count else {
            // The proxy has closed a kept connection.
            return end("could not send", isComplete: false, isOwn: true)
        }
        later(request!.interval) { [self] in try receive() }
    }

    private func makeRange(_ length: Int64) -> String {
        let first = schedule.pick(0...length)
        return switch schedule.pick(0...3) {
        case 0: "bytes=\(first)-"
        case 1: "bytes=-\(schedule.pick(1...length))"
        case 2: "bytes=\(first)-\(first + schedule.pick(0...200_000))"
        default: "bytes=0-"
        }
    }

    // MARK: Receiving

    private func receive() throws {
        guard var request else { return }
        var count = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: request.piece) { buffer, filled in
            count = recv(socket, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT))
            filled = max(0, count)
        }
        if count < 0 {
            guard errno == EAGAIN else { return end("reset", isComplete: false) }
            guard Double(schedule.now - request.lastNews) < request.patience * 1e9 else {
                if request.isQuiet { throw Violation("\(request.film.name) comes no further than \(request.received)") }
                return end("loses patience", isComplete: false, isOwn: true)
            }
            return later(max(0.02, request.interval)) { [self] in try receive() }
        }
        guard count > 0 else {
            let isComplete = request.head != nil && decoder.mayEndHere
            if request.head != nil, decoder.mayEndHere { try complete() }
            return end("closed by the proxy", isComplete: isComplete)
        }
        request.lastNews = schedule.now
        self.request = request
        decoder.append(bytes)
        if request.head == nil {
            guard let head = try decoder.nextHead(method: request.method) else {
                return later(request.interval) { [self] in try receive() }
            }
            guard head.status >= 200 else { return later(request.interval) { [self] in try receive() } }
            try begin(head)
        }
        while case .bytes(let bytes) = try decoder.nextBody(upTo: .max) { try check(bytes) }
        if decoder.framing == .done {
            try complete()
            return end("completed", isComplete: true)
        }
        request = self.request!
        if let leaves = request.leaves, request.received >= leaves {
            return end("leaves", isComplete: false, isOwn: true)
        }
        var interval = request.interval
        if let pause = request.pausesAt, request.received >= pause {
            self.request!.pausesAt = nil
            interval = schedule.pick([1, 10, 40])
        }
        later(interval) { [self] in try receive() }
    }

    /// - Parameter isOwn: whether it is the player that ends it.
    private func end(_ how: String, isComplete: Bool, isOwn: Bool = false) {
        guard let ended = request else { return }
        let status = ended.head?.status ?? 0
        let text = "player \(number): \(ended.film.name) \(status) \(ended.offset) \(how) after \(ended.received)"
        world.note(text)
        // Where only a part of an earlier version is cached, the rest cannot be had.
        let isOutOfDate =
            !ended.candidates.isEmpty && !ended.candidates.contains { $0.number == ended.film.current.number }
        let isAnswered = (ended.isQuiet ? [200, 206] : [200, 204, 206, 304, 412, 416]).contains(status)
        // Whoever removes or changes what is played cuts it.
        let isJudged = ended.isQuiet || !world.hasFaults && !isOwn && ended.film.removed < ended.began
        if isJudged, !isAnswered || !isComplete && !isOutOfDate {
            world.failed("without a fault: \(text)")
        }
        if !isComplete { countUnread() }
        request = nil
        if !isComplete || ended.head?.headers["Connection"] == "close" { hangUp() }
        thinkThenRequest()
    }

    // MARK: What it must be

    private func begin(_ head: RawClient.ResponseHead) throws {
        guard var request else { return }
        defer { self.request = request }
        request.head = head
        world.note("player \(number): \(head.status) \(head.headers["Cache-Status"] ?? "")")
        if request.method == "POST" {
            if head.status == 204, let version = head.headers["Version"].flatMap({ Int($0) }) {
                request.film.oldest = max(request.film.oldest, version)
                request.film.removed = schedule.now
            }
            return
        }
        guard head.status == 200 || head.status == 206 else { return }
        let film = request.film
        request.candidates = film.versions(tagged: head.headers["ETag"]).filter { $0.number >= request.oldest }
        if request.candidates.isEmpty {
            throw Violation(
                "no version of \(film.name) from \(request.oldest) on has the tag \(head.headers["ETag"] ?? "-")")
        }
        try checkAge(request)
        if head.status == 206 {
            guard request.range != nil else { throw Violation("a part that was not requested") }
            guard let text = head.headers["Content-Range"], let (range, total) = Self.parse(text) else {
                throw Violation("Content-Range: \(head.headers["Content-Range"] ?? "-")")
            }
            request.candidates.removeAll { $0.length != total }
            try checkPart(range, total, of: request)
            (request.offset, request.end) = (range.lowerBound, range.upperBound)
        } else if request.method == "GET", let length = head.headers["Content-Length"].flatMap({ Int64($0) }) {
            request.candidates.removeAll { $0.length != length }
            request.end = length
        }
        if request.candidates.isEmpty { throw Violation("no version of \(film.name) is as long") }
    }

    /// RFC 9111 §4.2: as long as nothing goes wrong, what is sent was the current version within its lifetime.
    private func checkAge(_ request: Request) throws {
        let lifetime = UInt64(request.film.maxAge ?? 0) * 1_000_000_000
        // Ages are counted in seconds; and what was requested just before a change may come long after it.
        let since = request.began - min(request.began, lifetime + 3_000_000_000 + world.longestAnswer)
        guard world.origin.lastFault < since, world.lastStall < since else { return }
        guard request.candidates.contains(where: { request.film.wasCurrent($0, since: since) }) else {
            throw Violation("\(request.film.name) is out of date by more than \(request.film.maxAge ?? 0) s")
        }
    }

    private static func parse(_ text: String) -> (Range<Int64>, total: Int64)? {
        let numbers = text.dropFirst("bytes ".count).split { "-/".contains($0) }.compactMap { Int64($0) }
        guard numbers.count == 3, numbers[0] <= numbers[1] else { return nil }
        return (numbers[0]..<numbers[1] + 1, numbers[2])
    }

    private func checkPart(_ part: Range<Int64>, _ total: Int64, of request: Request) throws {
        guard let wanted = request.range?.dropFirst("bytes=".count) else { return }
        let ends = wanted.split(separator: "-", omittingEmptySubsequences: false).map { Int64($0) }
        let expected: Range<Int64> =
            switch (ends[0], ends[1]) {
            case (let first?, let last?): first..<min(last + 1, total)
            case (let first?, nil): first..<total
            case (nil, let count?): max(0, total - count)..<total
            case (nil, nil): 0..<0
            }
        guard part == expected else { throw Violation("\(part) of \(total) for \(wanted)") }
    }

    private func check(_ bytes: [UInt8]) throws {
        guard request != nil else { return }
        defer {
            request!.offset += Int64(bytes.count)
            request!.received += Int64(bytes.count)
            request!.film.received += Int64(bytes.count)
        }
        guard let request, [200, 206].contains(request.head?.status) else {
            return world.note(String(decoding: bytes, as: UTF8.self))
        }
        let range = request.offset..<request.offset + Int64(bytes.count)
        self.request!.candidates.removeAll { !request.film.has(bytes, at: range.lowerBound, $0) }
        guard !self.request!.candidates.isEmpty else {
            let versions = request.film.versions.filter { request.film.has(bytes, at: range.lowerBound, $0) }
            throw Violation(
                """
                wrong bytes of \(request.film.name) at \(range): announced \(request.candidates.map(\.number)), \
                these are of \(versions.map(\.number)); \(request.head!.headers["Cache-Status"] ?? "")
                """)
        }
    }

    private func complete() throws {
        guard let request, request.method == "GET", [200, 206].contains(request.head?.status) else { return }
        guard request.offset == request.end ?? request.candidates.first?.length else {
            // Only the end of the connection ends a body of unknown length.
            throw Violation("\(request.film.name) ends at \(request.offset) of \(request.end ?? -1)")
        }
    }
}
