import HTTPModel

extension Output {
    /// Begins an answer with these lines.
    func begin(_ statusLine: [UInt8], date: [UInt8]?) {
        framed.append(contentsOf: statusLine)
        if let date { framed.append(contentsOf: date) }
    }

    /// Adds the fields of an answer, more lines, and the fields that describe the framing of its body (RFC 9112 §6).
    func layOut(_ response: Response, and lines: [UInt8], for request: RequestHead, hasContent: Bool) {
        framed.append(contentsOf: response.fieldBytes)
        framed.append(contentsOf: lines)
        if response.opensTunnel {
            framing = .untilClose
            return frame("\r\n")
        }
        if let length = response.length {
            // RFC 9110 §8.6: no Content-Length with 204.
            if response.status != 204 {
                frame("Content-Length: ")
                framed.append(decimal: length)
                frame("\r\n")
            }
            framing = .length(length)
        } else if request.version == .http11 {
            if hasContent { frame("Transfer-Encoding: chunked\r\n") }
            framing = .chunked
        } else {
            if hasContent { keepsAlive = false }
            framing = .untilClose
        }
        if !keepsAlive {
            frame("Connection: close\r\n")
        } else if request.version == .http10 {
            frame("Connection: keep-alive\r\n")
        }
        frame("\r\n")
    }
}
