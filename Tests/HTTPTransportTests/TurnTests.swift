import Glibc
import HTTPTransport
import TestSupport
import Testing

/// One connection is not all that a loop has to do.
@Suite struct TurnTests {
    /// 1,500 requests are there at once, and while the first is answered another client's comes: it waits for a few of
    /// them.
    @Test func pipelinedRequestsLeaveOthersTheirTurn() throws {
        let first = Monitor(false), continues = Monitor(false), answered = Monitor(0)
        let server = try TestServer { exchange in
            let target = exchange.request.target
            if target == "/0" {
                first.update { $0 = true }
                // Holds the loop until the other's request is in its socket.
                try? continues.wait(for: "the other request") { $0 ? () : nil }
            }
            if target == "/other" { return exchange.respond(200, text: "\(answered.read { $0 })") }
            answered.update { $0 += 1 }
            exchange.respond(200, text: target)
        }
        let other = try server.client()
        #expect(try other.get("/other").text == "0\n")
        let client = try server.client()
        let count = 1500
        try client.send((0..<count).map { "GET /\($0) HTTP/1.1\r\nHost: a\r\n\r\n" }.joined())
        try first.wait(for: "the first request") { $0 ? () : nil }
        try other.send(other.request("/other"))
        try eventually("the request in the server's socket") { other.hasArrived }
        continues.update { $0 = true }
        let before = try #require(Int(try other.readResponse().text.dropLast()))
        #expect(before <= 2 * TransportLimits().requestsPerTurn, "answered before the other client was")
        for index in 0..<count {
            let text = try client.readResponse().text
            if text != "/\(index)\n" { throw Unexpected("\(text) instead of /\(index)") }
        }
    }

    /// Also those that come one by one, each in several pieces, are answered in their order.
    @Test func requestsInPiecesAreAnsweredWhole() throws {
        let server = try TestServer { $0.respond(200, text: $0.request.target) }
        let client = try server.client()
        let long = String(repeating: "x", count: 3000)
        let requests = (0..<40).map { client.request("/\($0)", headers: [("X", long), ("Y", long)]) }
        let sender = try Background {
            var rest = Substring(requests.joined())
            while !rest.isEmpty {
                try client.send(String(rest.prefix(701)))
                rest = rest.dropFirst(701)
            }
        }
        for index in 0..<40 { #expect(try client.readResponse().text == "/\(index)\n") }
        try sender.value()
    }
}
