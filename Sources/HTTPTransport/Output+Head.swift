import HTTPModel

extension Output {
    /// Begins an answer: lays out its head, and takes over its body.
    /// - Parameters:
    ///   - date: the line, for answers without one.
    ///   - lines: more field lines.
    ///   - body: nil if there is none.
    ///   - keepsReading: whether the body of the request is still used until this one has ended.
    func begin(
        _ response: Response, date: [UInt8], and lines: [UInt8], for request: RequestHead, body: (any BodySource)?,
        keepsReading: Bool
    ) {
        // RFC 9110 §9.3.2, §15.4.5: no content in these answers.
        var hasContent = response.status != 304 && response.status != 204
        if case .head = request.method { hasContent = false }
        chooseFraming(of: response, for: request, hasContent: hasContent)
        let (framing, keepsAlive, start) = (framing, keepsAlive, StatusCode.line(response.status))
        // no trap: arrays in memory
        let most = start.count + date.count + response.rendered.count + response.fieldBytes.count + lines.count + 96
        frame { head in
            head.append(upTo: most) { line in
                line.append(start)
                if !response.hasDate { line.append(date) }
                line.append(response.rendered)
                line.append(response.fieldBytes)
                line.append(lines)
                Self.writeFraming(framing, keepsAlive, of: response, for: request, hasContent: hasContent, to: &line)
            }
        }
        bodyBytesTaken = 0
        if let body, hasContent || keepsReading {
            (source, isComplete, isEndless) = (body, false, hasContent && response.isEndless)
            // The answer is over when its source has ended, without a byte.
            if !hasContent { self.framing = .length(0) }
        } else {
            (self.framing, isComplete) = (.none, true)
            body?.finish()
        }
    }

    private func chooseFraming(of response: Response, for request: RequestHead, hasContent: Bool) {
        framing =
            response.opensTunnel
            ? .untilClose
            : response.length.map { .length($0) } ?? (request.version == .http11 ? .chunked : .untilClose)
        if case .untilClose = framing, hasContent, !response.opensTunnel { keepsAlive = false }
    }

    /// Writes the fields that describe the framing of the body (RFC 9112 §6), and the end of the head.
    private static func writeFraming(
        _ framing: Framing, _ keepsAlive: Bool, of response: Response, for request: RequestHead, hasContent: Bool,
        to line: inout LineWriter
    ) {
        switch framing {
        // RFC 9110 §8.6: no Content-Length with 204.
        case .length(let length) where response.status != 204:
            line.append("Content-Length: ")
            line.append(decimal: length)
            line.append("\r\n")
        case .chunked where hasContent: line.append("Transfer-Encoding: chunked\r\n")
        case .length, .chunked, .untilClose, .none: break
        }
        if !keepsAlive, !response.opensTunnel {
            line.append("Connection: close\r\n")
        } else if keepsAlive, case .http10 = request.version {
            line.append("Connection: keep-alive\r\n")
        }
        line.append("\r\n")
    }

    /// Adds an interim response (RFC 9110 §15.2): the answer itself follows later.
    func interim(_ status: Int, _ lines: [UInt8]) {
        frame { head in
            head.append(contentsOf: StatusCode.line(status))
            head.append(contentsOf: lines)
            head.append("\r\n")
        }
        isComplete = false
    }
}
