import Foundation

/// An ordinary HTTP or SOCKS 5 proxy on a port of 127.0.0.1. Whatever host a client names, it connects to one port of
/// this machine: so names need not exist. It writes down what it was asked.
package final class ScriptedProxy: Sendable {
    package enum Kind: Sendable { case http, socks }

    /// What a client has asked for.
    package struct Request: Sendable, Equatable {
        /// `CONNECT host:port`, `GET http://host/path`, or `SOCKS host:port`.
        package let line: String
        /// What it said of itself: the value of `Proxy-Authorization`, or `user:password`.
        package let credentials: String?
    }

    package let port: Int
    private let kind: Kind
    private let target: Int
    private let credentials: String?
    private let refuses: Bool
    private let listener: Socket
    private let log = Monitor<[Request]>([])

    /// - Parameters:
    ///   - target: the port to connect to.
    ///   - credentials: `user:password`, without which it refuses; nil to take everybody.
    ///   - refuses: whether it refuses all connections to origins.
    package init(_ kind: Kind, to target: Int, credentials: String? = nil, refuses: Bool = false) throws {
        (self.kind, self.target, self.credentials, self.refuses) = (kind, target, credentials, refuses)
        listener = try Socket.listening(port: 0, sendBuffer: 128 * 1024)
        port = try listener.port()
        try startThread { [listener, weak self] in
            while let client = try? listener.accepted() {
                guard let self else { return client.close() }
                try? startThread { self.serve(client) }
            }
        }
    }

    package func stop() { listener.shutDown() }

    /// In the order of their arrival.
    package var requests: [Request] { log.read { $0 } }

    private func note(_ line: String, _ credentials: String?) {
        log.update { $0.append(Request(line: line, credentials: credentials)) }
    }

    private func serve(_ client: Socket) {
        defer { client.close() }
        switch kind {
        case .http: try? serveHTTP(client)
        case .socks: try? serveSOCKS(client)
        }
    }

    // MARK: HTTP

    private func serveHTTP(_ client: Socket) throws {
        var bytes: [UInt8] = []
        while !String(decoding: bytes, as: UTF8.self).contains("\r\n\r\n") {
            let more = try client.receive()
            guard !more.isEmpty else { return }
            bytes += more
        }
        let head = String(decoding: bytes, as: UTF8.self)
        let lines = head.components(separatedBy: "\r\n"), words = lines[0].components(separatedBy: " ")
        let given = lines.first { $0.lowercased().hasPrefix("proxy-authorization: ") }.map { String($0.dropFirst(21)) }
        note(words.dropLast().joined(separator: " "), given)
        let wanted = credentials.map { "Basic " + Data($0.utf8).base64EncodedString() }
        guard wanted == nil || given == wanted else {
            return try client.send(
                "HTTP/1.1 407 Not You\r\nProxy-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            )
        }
        guard !refuses else {
            return try client.send("HTTP/1.1 403 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        }
        let origin = try Socket.connected(port: target, receiveBuffer: nil)
        defer { origin.close() }
        if words[0] == "CONNECT" {
            try client.send("HTTP/1.1 200 Connected\r\n\r\n")
        } else {
            // One request for each connection, in origin form.
            let path = words[1].components(separatedBy: "/").dropFirst(3).joined(separator: "/")
            let rest = lines.dropFirst().filter { !$0.lowercased().hasPrefix("proxy-authorization:") }
            try origin.send(
                ([words[0] + " /" + path + " HTTP/1.1", "Connection: close"] + rest).joined(separator: "\r\n"))
        }
        Self.relay(client, origin)
    }

    // MARK: SOCKS 5 (RFC 1928, RFC 1929)

    private func serveSOCKS(_ client: Socket) throws {
        let greeting = try Self.read(client, 2)
        let methods = try Self.read(client, Int(greeting[1]))
        var given: String?
        if methods.contains(2) {
            try Self.send(client, [5, 2])
            let user = try Self.read(client, Int(try Self.read(client, 2)[1]))
            let password = try Self.read(client, Int(try Self.read(client, 1)[0]))
            given = String(decoding: user + [58] + password, as: UTF8.self)
            try Self.send(client, [1, credentials == given || credentials == nil ? 0 : 1])
        } else {
            try Self.send(client, [5, credentials == nil ? 0 : 255])
        }
        guard credentials == nil || credentials == given else { return note("SOCKS", given) }
        let request = try Self.read(client, 4)
        let host: String
        switch request[3] {
        case 3: host = String(decoding: try Self.read(client, Int(try Self.read(client, 1)[0])), as: UTF8.self)
        case 1: host = try Self.read(client, 4).map(String.init).joined(separator: ".")
        default: host = "v6 \(try Self.read(client, 16))"
        }
        let port = try Self.read(client, 2)
        note("SOCKS \(host):\(Int(port[0]) << 8 | Int(port[1]))", given)
        try Self.send(client, [5, refuses ? 2 : 0, 0, 1, 127, 0, 0, 1, 0, 1])
        guard !refuses else { return }
        let origin = try Socket.connected(port: target, receiveBuffer: nil)
        defer { origin.close() }
        Self.relay(client, origin)
    }

    // MARK: Bytes

    private struct Closed: Error {}

    private static func read(_ socket: Socket, _ count: Int) throws -> [UInt8] {
        var bytes: [UInt8] = []
        while bytes.count < count {
            let more = try socket.receive(atMost: count - bytes.count)
            guard !more.isEmpty else { throw Closed() }
            bytes += more
        }
        return bytes
    }

    private static func send(_ socket: Socket, _ bytes: [UInt8]) throws {
        try bytes.withUnsafeBytes { try socket.send($0) }
    }

    /// Passes bytes on in both directions until one side ends.
    private static func relay(_ client: Socket, _ origin: Socket) {
        let ended = Monitor(false)
        try? startThread {
            copy(client, origin)
            ended.update { $0 = true }
        }
        copy(origin, client)
        try? ended.wait(for: "the end of a client") { $0 ? () : nil }
    }

    private static func copy(_ source: Socket, _ sink: Socket) {
        while let bytes = try? source.receive(), !bytes.isEmpty, (try? send(sink, bytes)) != nil {}
        source.shutDown()
        sink.shutDown()
    }
}
