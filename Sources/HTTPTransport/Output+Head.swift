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
        let hasContent = request.method != .head && response.status != 304 && response.status != 204
        frame { head in
            head.reserveCapacity(response.fieldBytes.count + lines.count + 256) // no trap: arrays in memory
            head.append(contentsOf: StatusCode.line(response.status))
            if !response.hasDate { head.append(contentsOf: date) }
            head.append(contentsOf: response.fieldBytes)
            if !lines.isEmpty { head.append(contentsOf: lines) }
            layOutFraming(of: response, for: request, hasContent: hasContent, in: &head)
        }
        bodyBytesTaken = 0
        if let body, hasContent || keepsReading {
            (source, isComplete, isEndless) = (body, false, hasContent && response.isEndless)
            // The answer is over when its source has ended, without a byte.
            if !hasContent { framing = .length(0) }
        } else {
            (framing, isComplete) = (.none, true)
            body?.finish()
        }
    }

    /// Adds the fields that describe the framing of the body (RFC 9112 §6), and the end of the head.
    private func layOutFraming(
        of response: Response, for request: RequestHead, hasContent: Bool, in head: inout [UInt8]
    ) {
        framing =
            response.opensTunnel
            ? .untilClose
            : response.length.map { .length($0) } ?? (request.version == .http11 ? .chunked : .untilClose)
        if case .untilClose = framing, hasContent, !response.opensTunnel { keepsAlive = false }
        let (framing, keepsAlive) = (framing, keepsAlive)
        head.append(upTo: 96) { line in
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
            } else if keepsAlive, request.version == .http10 {
                line.append("Connection: keep-alive\r\n")
            }
            line.append("\r\n")
        }
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
