import Glibc
import TestSupport
import Testing
import Upstream

/// Bytes that an origin sends after the end of an answer, on a connection that stays open.
@Suite struct SurplusTests {
    private static let answer = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc"

    /// The next request has a connection of its own, and never the rest of the answer before.
    @Test(arguments: ["surplus\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong", "\r\n"])
    func surplusOfTheAnswerBefore(_ surplus: String) throws {
        let origin = try TalkativeOrigin(Self.answer)
        let upstreams = try Upstreams()
        for round in 1...3 {
            let (recorder, error) = try upstreams.fetch(origin.url)
            #expect(error == nil)
            #expect(String(decoding: recorder.body, as: UTF8.self) == "abc")
            #expect(origin.connections == round)
            try origin.say(surplus)
        }
    }

    /// The body of an answer that has none.
    @Test func aHeadWithABody() throws {
        let origin = try TalkativeOrigin(Self.answer)
        let upstreams = try Upstreams()
        for _ in 1...3 {
            let (recorder, error) = try upstreams.fetch(origin.url, method: .head)
            #expect(error == nil && recorder.heads.first?.contentLength == 3 && recorder.body.isEmpty)
        }
    }

    /// It comes together with the request, so that nobody could have seen it before.
    @Test func surplusThatComesLate() throws {
        let origin = try TalkativeOrigin(Self.answer, beforeTheSecond: "late\r\n")
        let upstreams = try Upstreams()
        for _ in 1...3 {
            let (recorder, error) = try upstreams.fetch(origin.url)
            #expect(error == nil && String(decoding: recorder.body, as: UTF8.self) == "abc")
        }
        #expect(origin.connections >= 2)
    }

    @Test func aQuietConnectionIsUsedAgain() throws {
        let origin = try TalkativeOrigin(Self.answer)
        let upstreams = try Upstreams()
        for _ in 1...3 { #expect(try upstreams.fetch(origin.url).error == nil) }
        #expect(origin.connections == 1)
    }
}

/// Answers each request with the same bytes, on connections that stay open and on which it can say more.
final class TalkativeOrigin: Sendable {
    private let connected = Monitor<[Int32]>([])
    private let listener: Int32
    private let port: Int

    /// - Parameter surplus: comes on a connection together with its second answer, ahead of it.
    init(_ answer: String, beforeTheSecond surplus: String = "") throws {
        (listener, port) = CannedOrigin.listen()
        _ = try Background { [listener, connected] in
            while case let connection = accept(listener, nil, nil), connection >= 0 {
                connected.update { $0.append(connection) }
                _ = try Background {
                    var count = 0
                    while Self.readsRequest(connection) {
                        Self.write(count == 1 ? surplus + answer : answer, connection)
                        count += 1
                    }
                }
            }
        }
    }

    deinit {
        shutdown(listener, Int32(SHUT_RDWR))
        close(listener)
        for connection in connected.read({ $0 }) {
            shutdown(connection, Int32(SHUT_RDWR))
            close(connection)
        }
    }

    var url: String { "http://127.0.0.1:\(port)/" }
    var connections: Int { connected.read(\.count) }

    /// On all connections that are still open. It is there when this returns.
    func say(_ text: String) throws {
        let connections = connected.read { $0 }
        for connection in connections { Self.write(text, connection) }
        try eventually("what was said at the other ends") { connections.allSatisfy(allHasArrived) }
    }

    private static func readsRequest(_ connection: Int32) -> Bool {
        var request: [UInt8] = [], buffer = [UInt8](repeating: 0, count: 4096)
        while !request.suffix(4).elementsEqual("\r\n\r\n".utf8) {
            let count = recv(connection, &buffer, buffer.count, 0)
            guard count > 0 else { return false }
            request += buffer[..<count]
        }
        return true
    }

    private static func write(_ text: String, _ connection: Int32) {
        let bytes = Array(text.utf8)
        _ = send(connection, bytes, bytes.count, Int32(MSG_NOSIGNAL))
    }
}
