import Foundation

/// A request as it came off the wire.
struct OriginRequestHead: Sendable {
    let method: String
    let target: String
    let isHTTP10: Bool
    let headers: HeaderList
    var body: [UInt8] = []

    /// Parses a head without its last empty line.
    init?(_ text: String) {
        let lines = text.components(separatedBy: "\r\n")
        let parts = lines[0].split(separator: " ").map(String.init)
        guard parts.count == 3, parts[2].hasPrefix("HTTP/1."), let headers = HeaderList(lines: Array(lines.dropFirst()))
        else { return nil }
        (method, target, isHTTP10, self.headers) = (parts[0], parts[1], parts[2] == "HTTP/1.0", headers)
    }

    var range: OriginRange? { headers["Range"].flatMap { OriginRange(field: $0) } }

    /// Whether the client wants the connection closed after the response.
    var wantsClose: Bool {
        isHTTP10 ? !headers.hasToken("keep-alive", in: "Connection") : headers.hasToken("close", in: "Connection")
    }

    var targetWithoutQuery: String { String(target.prefix { $0 != "?" }) }
}

/// Reads one request after the other from a connection; what has come too early stays for the next.
struct OriginRequestReader {
    private let socket: Socket
    private var buffer = ByteQueue()

    init(_ socket: Socket) {
        self.socket = socket
    }

    /// The next request without its body, or `nil` when the client has closed or sent what is no request.
    mutating func next() throws -> OriginRequestHead? {
        guard let end = try find("\r\n\r\n") else { return nil }
        let text = String(decoding: buffer.take(end), as: UTF8.self)
        _ = buffer.take(4)
        return OriginRequestHead(text)
    }

    /// The body of the request that came last, or `nil` when it did not come whole.
    mutating func readBody(of request: OriginRequestHead) throws -> [UInt8]? {
        if request.headers["Expect"]?.lowercased() == "100-continue" {
            try socket.send("HTTP/1.1 100 Continue\r\n\r\n")
        }
        if request.headers.hasToken("chunked", in: "Transfer-Encoding") { return try readChunks() }
        return try take(Int(request.headers["Content-Length"] ?? "0") ?? 0)
    }

    private mutating func readChunks() throws -> [UInt8]? {
        var body: [UInt8] = []
        while let line = try takeLine(), let size = Int(line.prefix { $0 != ";" }, radix: 16) {
            if size == 0 { return try skipTrailer() ? body : nil }
            guard let chunk = try take(size), try takeLine() == "" else { return nil }
            body += chunk
        }
        return nil
    }

    private mutating func skipTrailer() throws -> Bool {
        while let line = try takeLine() {
            if line.isEmpty { return true }
        }
        return false
    }

    private mutating func takeLine() throws -> String? {
        guard let end = try find("\r\n") else { return nil }
        defer { _ = buffer.take(2) }
        return String(decoding: buffer.take(end), as: UTF8.self)
    }

    private mutating func take(_ n: Int) throws -> [UInt8]? {
        while buffer.count < n {
            if try !receive() { return nil }
        }
        return buffer.take(n)
    }

    private mutating func find(_ pattern: String) throws -> Int? {
        while true {
            if let index = buffer.firstIndex(of: Array(pattern.utf8)) { return index }
            if try !receive() { return nil }
        }
    }

    /// The first byte of a TLS connection.
    private static let handshake: UInt8 = 0x16

    private mutating func receive() throws -> Bool {
        let bytes = try socket.receive()
        if buffer.count == 0, bytes.first == Self.handshake {
            // As real servers of plain HTTP do.
            try socket.send("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
            return false
        }
        buffer.append(bytes)
        return !bytes.isEmpty
    }
}
