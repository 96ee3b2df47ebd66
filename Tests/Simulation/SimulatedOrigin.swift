import CachePolicy
import EventIO
import HTTPModel
import Upstream

/// An origin with films, latencies, cuts and lies. One for all loops.
final class SimulatedOrigin {
    let schedule: Schedule
    private(set) var films: [Film] = []
    /// How likely a request meets a fault; 0 after the last.
    var faults: Double
    /// Whether it cannot be reached at all.
    var isDown = false
    /// Its playlists, by URL.
    var playlists: [String: String] = [:]
    /// Whether it answers at once.
    var isPrompt = false
    /// Whether what it is sending breaks off as it goes down.
    var breaksWhenDown = false
    /// When something last went wrong, in nanoseconds.
    private(set) var lastFault: UInt64 = 0
    /// What each film has cost, by name.
    private(set) var costs: [String: Cost] = [:]
    private(set) var running = 0
    /// How many threads handed over what led to the last request (`Schedule.depth`).
    private(set) var lastDepth = 0
    var note: (String) -> Void = { _ in }

    struct Cost {
        var requests = 0
        /// Bytes of bodies that were taken.
        var sent: Int64 = 0
        /// Bytes before those that were requested, of answers with the whole.
        var unwanted: Int64 = 0
    }

    /// Whether it makes no fault, and uses what RFC 9110 leaves to it: no ranges, no length, other parts.
    private let isFree: Bool

    init(_ schedule: Schedule, films: Int, faults: Double, isFree: Bool = false) {
        (self.schedule, self.faults, self.isFree) = (schedule, faults, isFree)
        self.films = (0..<films).map { Film("film-\($0).mp4", schedule, isPlain: isFree) }
    }

    func publish(_ film: Film) { films.append(film) }

    func film(at url: String) -> Film? { films.first { $0.url == url } }

    func begin(_ request: UpstreamRequest, _ delegate: any TransferDelegate, on loop: EventLoop) -> any Transfer {
        running += 1
        lastDepth = schedule.depth
        if let film = film(at: request.url) { costs[film.name, default: Cost()].requests += 1 }
        return SimulatedTransfer(request, delegate, self, loop)
    }

    func ended() { running -= 1 }

    func took(_ count: Int, of film: Film) { costs[film.name, default: Cost()].sent += Int64(count) }

    func noteFault(_ what: String) {
        lastFault = schedule.now
        note("origin: \(what)")
    }

    /// What the origin answers: a head and a body, or nothing.
    struct Answer {
        var status: Int
        var fields = HeaderFields()
        /// What the body consists of.
        var body: [UInt8] = []
        var contentLength: Int64?
        /// After so many bytes of the body, the connection is lost.
        var cut: Int?
        /// After so many bytes, nothing more comes.
        var stall: Int?
    }

    /// - Throws: `UpstreamError` if it cannot be reached.
    func answer(_ request: UpstreamRequest) throws(UpstreamError) -> Answer {
        guard let film = film(at: request.url) else {
            guard let text = playlists[request.url] else { return Answer(status: 404, contentLength: 0) }
            let fields = HeaderFields([
                .init(name: "Content-Type", value: "application/vnd.apple.mpegurl"),
                .init(name: "ETag", value: "\"1\""),
            ])
            return Answer(status: 200, fields: fields, body: Array(text.utf8), contentLength: Int64(text.utf8.count))
        }
        if isDown || schedule.chance(faults / 4) {
            noteFault("refuses \(film.name)")
            throw .cannotConnect(host: "origin.test", detail: "connection refused")
        }
        if schedule.chance(faults / 4) {
            noteFault("503 for \(film.name)")
            return Answer(status: 503, body: Array("busy".utf8), contentLength: 4)
        }
        var answer = truth(film, request)
        if schedule.chance(faults) { spoil(&answer, film, request) }
        if isFree, schedule.chance(0.6) { sendOther(&answer, film, request) }
        // What does not begin where it was requested.
        if answer.status == 200, request.span != nil || answer.fields["Content-Range"] != nil {
            costs[film.name, default: Cost()].unwanted += Int64(answer.body.count)
        }
        return answer
    }

    // MARK: RFC 9110

    private func truth(_ film: Film, _ request: UpstreamRequest) -> Answer {
        if case .other = request.method {
            film.change(schedule)
            var answer = Answer(status: 204)
            answer.fields.append("Version", String(film.current.number))
            return answer
        }
        let version = film.current, tag = film.tag(version)
        var answer = Answer(status: 200)
        answer.fields.append("Content-Type", "video/mp4")
        if let tag { answer.fields.append("ETag", tag) }
        answer.fields.append("Cache-Control", film.maxAge.map { "max-age=\($0)" } ?? "no-cache")
        answer.fields.append("Accept-Ranges", film.servesRanges ? "bytes" : "none")
        if let tag, let known = request.fields["If-None-Match"], known.contains(tag) {
            answer.status = 304
            return answer
        }
        let condition = request.fields["If-Range"]
        let applies = condition == nil || condition == tag && film.validator == .strong
        guard film.servesRanges, applies, let span = request.span else {
            answer.body = request.method == .head ? [] : film.bytes(0..<version.length, of: version)
            answer.contentLength = film.statesLength ? version.length : nil
            return answer
        }
        guard let range = Self.range(span, in: version.length) else {
            answer.status = 416
            answer.fields.append("Content-Range", "bytes */\(version.length)")
            answer.contentLength = 0
            return answer
        }
        answer.status = 206
        answer.fields.append(
            "Content-Range", "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(version.length)")
        answer.contentLength = Int64(range.count)
        answer.body = film.bytes(range, of: version)
        return answer
    }

    private static func range(_ span: UpstreamRequest.Span, in length: Int64) -> Range<Int64>? {
        switch span {
        case .bounded(let range): range.lowerBound < length ? range.clamped(to: 0..<length) : nil
        case .from(let first): first < length ? first..<length : nil
        case .suffix(let count): count > 0 ? max(0, length - count)..<length : nil
        }
    }

    // MARK: Cuts and lies

    /// RFC 9110 §14.2, §15.3.7: the whole, or less than was requested.
    private func sendOther(_ answer: inout Answer, _ film: Film, _ request: UpstreamRequest) {
        guard request.method == .get, answer.status == 206, request.fields["If-Range"] == nil,
            let range = request.span.flatMap({ Self.range($0, in: film.current.length) })
        else { return }
        var whole = request
        whole.span = nil
        guard schedule.chance(0.7) else { return answer = truth(film, whole) }
        // Not within a chunk: without a strong validator, the rest of that may be lost before a slow player has it.
        let end = range.lowerBound + schedule.pick(1...Int64(range.count)), chunk: Int64 = 16 << 10
        send(range.lowerBound..<min(range.upperBound, (end + chunk - 1) / chunk * chunk), of: film, in: &answer)
    }

    /// Sends another range than was requested, as the answer itself says.
    private func send(_ range: Range<Int64>, of film: Film, in answer: inout Answer) {
        let version = film.current
        answer.fields.replace("Content-Range", "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(version.length)")
        (answer.body, answer.contentLength) = (film.bytes(range, of: version), Int64(range.count))
        note("origin: sends \(range) of \(film.name)")
    }

    private func spoil(_ answer: inout Answer, _ film: Film, _ request: UpstreamRequest) {
        let version = film.current, count = answer.body.count
        switch schedule.pick(0...6) {
        case 0...1 where count > 0:
            answer.cut = Int(schedule.pick(0...Int64(max(0, count - 1))))
            noteFault("cuts \(film.name) after \(answer.cut!)")
        case 2 where count > 0:
            answer.stall = Int(schedule.pick(0...Int64(min(count - 1, schedule.pick([9999, .max])))))
            noteFault("stalls in \(film.name) after \(answer.stall!)")
        case 3 where answer.status == 206 && film.validator == .strong:
            let start = schedule.pick(0...version.length - 1)
            send(start..<schedule.pick(start + 1...version.length), of: film, in: &answer)
            lastFault = schedule.now
        case 4 where answer.status == 206 && count > 0:
            answer.fields.remove("Content-Range")
            noteFault("does not say which part of \(film.name) it sends")
        case 5 where film.servesRanges && request.fields["If-Range"] != nil && film.validator == .strong:
            // It ignores If-Range, and sends a part of the present version.
            guard let span = request.span, let range = Self.range(span, in: version.length) else { return }
            answer.status = 206
            answer.fields.replace(
                "Content-Range", "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(version.length)")
            (answer.body, answer.contentLength) = (film.bytes(range, of: version), Int64(range.count))
            noteFault("ignores If-Range for \(film.name)")
        case 6 where request.span != nil && request.method == .get:
            var whole = request
            whole.span = nil
            answer = truth(film, whole)
            noteFault("ignores Range for \(film.name)")
        default: break
        }
    }
}

/// One request to the simulated origin.
final class SimulatedTransfer: Transfer {
    private let request: UpstreamRequest
    private var delegate: (any TransferDelegate)?
    private let origin: SimulatedOrigin
    private let film: Film?
    private let loop: EventLoop
    private var answer = SimulatedOrigin.Answer(status: 0)
    private var hasHead = false
    /// Bytes of the body that the delegate has taken.
    private(set) var bodyBytesReceived: Int64 = 0
    private(set) var isPaused = false
    var mayGiveWay = false
    /// Whether a piece is on its way.
    private var isUnderWay = false
    private let secondsPerPiece: Double
    private static let stallTimeout = 30.0

    init(_ request: UpstreamRequest, _ delegate: any TransferDelegate, _ origin: SimulatedOrigin, _ loop: EventLoop) {
        (self.request, self.delegate, self.origin, self.loop) = (request, delegate, origin, loop)
        film = origin.film(at: request.url)
        secondsPerPiece = origin.isPrompt ? 0 : origin.schedule.pick([0, 0.0005, 0.002, 0.02])
        let latency = origin.isPrompt ? 0 : origin.schedule.pick([0, 0.001, 0.02, 0.2, 1])
        later(latency / 2) { $0.arrived(latency / 2) }
    }

    var isReceiving: Bool { hasHead && delegate != nil }

    func pause() { isPaused = true }

    func resume() {
        guard isPaused else { return }
        (isPaused, mayGiveWay) = (false, false)
        sendNext()
    }

    func resumeUpload() {}

    func hurry() {}

    func cancel() {
        guard delegate != nil else { return }
        delegate = nil
        origin.ended()
    }

    // MARK: What comes

    private func later(_ seconds: Double, _ body: @escaping (SimulatedTransfer) -> Void) {
        origin.schedule.after(seconds, on: loop) { if self.delegate != nil { body(self) } }
    }

    private func arrived(_ latency: Double) {
        delegate?.transfer(self, isIn: .response)
        do throws(UpstreamError) { answer = try origin.answer(request) } catch {
            return later(latency) { $0.finish(error) }
        }
        later(latency) { $0.sendHead() }
    }

    private func sendHead() {
        hasHead = true
        var fields = answer.fields
        if let length = answer.contentLength { fields.append("Content-Length", String(length)) }
        delegate?.transfer(
            self,
            receivedHead: UpstreamHead(
                status: answer.status, fields: fields, finalURL: request.url,
                contentLength: answer.contentLength, scope: .public,
                receivedAt: Int64(origin.schedule.now / 1_000_000_000)))
        if request.method == .head || answer.status == 304 { answer.body = [] }
        sendNext()
    }

    private func sendNext() {
        guard delegate != nil, hasHead, !isUnderWay else { return }
        isUnderWay = true
        later(secondsPerPiece) { transfer in
            transfer.isUnderWay = false
            transfer.send()
        }
    }

    private func send() {
        if origin.isDown, origin.breaksWhenDown { return finish(.broken(detail: "connection reset")) }
        let place = Int(bodyBytesReceived), end = answer.cut ?? answer.stall ?? answer.body.count
        guard place < end else {
            if answer.cut != nil { return finish(.broken(detail: "cut")) }
            if answer.stall != nil, !isPaused {
                isUnderWay = true
                return later(Self.stallTimeout) { $0.finish(.timedOut(host: "origin.test", phase: .body)) }
            }
            return finish(nil)
        }
        guard !isPaused else { return giveWay() }
        var rest = min(
            end - place,
            origin.isPrompt ? 200_000 : Int(origin.schedule.pick([1, 1000, 16_384, 16_384, 16_384, 200_000])))
        // Curl hands over what has come piece by piece.
        while rest > 0, delegate != nil, !isPaused {
            let count = min(rest, 16_384), place = Int(bodyBytesReceived)
            let takes = answer.body[place..<place + count].withUnsafeBytes {
                delegate?.transfer(self, receivedBody: $0) == true
            }
            guard takes else {
                isPaused = true
                return giveWay()
            }
            rest -= count
            bodyBytesReceived += Int64(count)
            if let film { origin.took(count, of: film) }
        }
        sendNext()
    }

    /// Another transfer needs the slot of a paused one.
    private func giveWay() {
        guard origin.schedule.chance(0.1) else { return }
        later(1) { if $0.isPaused, $0.mayGiveWay { $0.delegate?.transferGivesWay($0) } }
    }

    private func finish(_ error: UpstreamError?) {
        guard let last = delegate else { return }
        delegate = nil
        origin.ended()
        last.transfer(self, finishedWith: error)
    }
}
