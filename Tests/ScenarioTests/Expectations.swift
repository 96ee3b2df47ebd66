import Testing
import TestSupport

/// The response is the whole film: status, length and each byte.
func expectWhole(
    _ response: RawClient.Response, _ film: Media, _ comment: Comment? = nil,
    sourceLocation: SourceLocation = #_sourceLocation
) {
    #expect(response.status == 200, comment, sourceLocation: sourceLocation)
    #expect(response.headers["Content-Length"] == "\(film.size)", comment, sourceLocation: sourceLocation)
    #expect(response.headers["Content-Range"] == nil, comment, sourceLocation: sourceLocation)
    #expect(film.difference(response.body, from: 0..<film.size) == nil, comment, sourceLocation: sourceLocation)
}

/// The response is this part of the film: status, range, length and each byte.
func expectPart(
    _ response: RawClient.Response, _ range: Range<Int64>, of film: Media, _ comment: Comment? = nil,
    sourceLocation: SourceLocation = #_sourceLocation
) {
    #expect(response.status == 206, comment, sourceLocation: sourceLocation)
    #expect(
        response.headers["Content-Range"] == "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(film.size)", comment,
        sourceLocation: sourceLocation)
    #expect(response.headers["Content-Length"] == "\(range.count)", comment, sourceLocation: sourceLocation)
    #expect(film.difference(response.body, from: range) == nil, comment, sourceLocation: sourceLocation)
}

/// The connection is cut in the middle of the answer.
func expectCut<T>(sourceLocation: SourceLocation = #_sourceLocation, _ body: () throws -> T) {
    let error = #expect(throws: RawClient.ResponseError.self, sourceLocation: sourceLocation) { try body() }
    if let error { #expect(error.isCut, sourceLocation: sourceLocation) }
}

/// The response says in one line of text what is wrong.
func expectOneLine(
    _ response: RawClient.Response, status: Int, _ comment: Comment? = nil,
    sourceLocation: SourceLocation = #_sourceLocation
) {
    #expect(response.status == status, comment, sourceLocation: sourceLocation)
    expectOneLine(response, comment, sourceLocation: sourceLocation)
}

/// The response's body is one line of text that a person can read.
func expectOneLine(
    _ response: RawClient.Response, _ comment: Comment? = nil, sourceLocation: SourceLocation = #_sourceLocation
) {
    let line = response.text.dropLast()
    #expect(response.text.last == "\n" && !line.isEmpty, comment ?? "\(response.text)", sourceLocation: sourceLocation)
    #expect(
        line.unicodeScalars.allSatisfy { (" "..."~").contains($0) }, comment ?? "\(response.text)",
        sourceLocation: sourceLocation)
    #expect(response.headers["Content-Type"]?.hasPrefix("text/plain") == true, comment, sourceLocation: sourceLocation)
}

extension RawClient.ResponseError {
    /// The connection ended in the middle of an answer, so that nobody can take it for whole.
    var isCut: Bool {
        switch self {
        case .truncated, .closedBeforeHead: true
        case .malformed, .timedOut: false
        }
    }
}

extension RawClient.Response {
    var cacheStatus: String { head.cacheStatus }
    /// Answered from the cache alone.
    var isHit: Bool { head.isHit }
}

extension RawClient.ResponseHead {
    var cacheStatus: String { headers["Cache-Status"] ?? "" }
    var isHit: Bool { cacheStatus.hasPrefix("reelcache; hit; ttl=") && !cacheStatus.contains("detail") }
    var isCollapsed: Bool { cacheStatus.contains("; collapsed") }
}

extension RawClient {
    /// Reads so much of a body, piece by piece.
    /// - Parameter check: asked after each piece for what else is wrong.
    /// - Returns: what is wrong with it as these bytes of the film; nil where nothing is.
    func difference(from film: Media, in range: Range<Int64>, and check: () throws -> String? = { nil }) throws
        -> String?
    {
        var offset = range.lowerBound
        while offset < range.upperBound {
            let piece = try readBody(upTo: Int(min(1 << 20, range.upperBound - offset)))
            if piece.isEmpty { return "ended at \(offset) instead of \(range.upperBound)" }
            if let wrong = film.firstMismatch(piece, at: offset) { return "wrong from offset \(wrong) on" }
            offset += Int64(piece.count)
            if let wrong = try check() { return "at \(offset): \(wrong)" }
        }
        return nil
    }
}

extension ScriptedOrigin {
    /// What it was asked for, whole requests as the whole: in the order of their arrival.
    func ranges(_ path: String, of film: Media) -> [Range<Int64>] {
        requests(path).map { ($0.range ?? 0..<film.size).clamped(to: 0..<film.size) }
    }

    /// Waits until the proxy has aborted a request.
    func waitForAbort(_ path: String) throws {
        try waitUntil("an aborted request for \(path)") { $0.requests(path).contains(where: \.aborted) }
    }
}
