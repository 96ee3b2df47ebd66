import Foundation
import Testing
import TestSupport

private let media = Media(seed: 1, size: 1_000_000)

private func makeOrigin(_ change: (inout ScriptedOrigin.Behaviour) -> Void = { _ in }) throws -> ScriptedOrigin {
    let origin = try ScriptedOrigin()
    origin.serve("/a.mp4", media)
    origin.script("/a.mp4", change)
    return origin
}

@Suite struct OriginCutTests {
    @Test(arguments: [0, 1, 65_536, 999_999] as [Int64])
    func responseIsCutAfterExactlySoManyBytesAndOnlyOnce(cut: Int64) throws {
        let origin = try makeOrigin { $0.cutAfter = cut }
        let client = try RawClient(port: origin.port)
        #expect(throws: RawClient.ResponseError.truncated(received: cut, expected: 1_000_000)) {
            try client.get("/a.mp4")
        }
        #expect(media.difference(client.partialBody, from: 0..<cut) == nil)
        #expect(
            try media.difference(RawClient.get(port: origin.port, path: "/a.mp4").body, from: 0..<media.size) == nil)
        let log = origin.requests("/a.mp4")
        #expect(log.map(\.bodyBytesSent) == [cut, 1_000_000])
        #expect(log.map(\.finished) == [false, true])
        #expect(log.map(\.aborted) == [false, false])
    }

    @Test func chunkedResponseCutAtItsEndLacksTheLastChunk() throws {
        let origin = try makeOrigin { ($0.cutAfter, $0.chunkedEncoding) = (1_000_000, true) }
        #expect(throws: RawClient.ResponseError.truncated(received: 1_000_000, expected: nil)) {
            try RawClient.get(port: origin.port, path: "/a.mp4")
        }
    }

    @Test func shorterResponseIsNotCutAndDoesNotCount() throws {
        let origin = try makeOrigin { $0.cutAfter = 10 }
        #expect(try RawClient.get(port: origin.port, path: "/a.mp4", range: "bytes=0-9").body.count == 10)
        #expect(try RawClient.get(port: origin.port, path: "/a.mp4", method: "HEAD").status == 200)
        #expect(throws: RawClient.ResponseError.self) {
            try RawClient.get(port: origin.port, path: "/a.mp4", range: "bytes=0-10")
        }
    }

    @Test func requestIsDroppedSoManyTimes() throws {
        let origin = try makeOrigin { ($0.closesBeforeHead, $0.cutTimes) = (true, 2) }
        for _ in 0..<2 {
            #expect(throws: RawClient.ResponseError.closedBeforeHead) {
                try RawClient.get(port: origin.port, path: "/a.mp4")
            }
        }
        #expect(try RawClient.get(port: origin.port, path: "/a.mp4").status == 200)
    }

    @Test func resetEndsTheResponseToo() throws {
        let origin = try makeOrigin { ($0.cutAfter, $0.cutsWithReset) = (500_000, true) }
        #expect(throws: RawClient.ResponseError.self) { try RawClient.get(port: origin.port, path: "/a.mp4") }
    }
}

@Suite struct OriginGateTests {
    @Test func heldBodySendsItsHeadAndNoByteUntilReleased() throws {
        let origin = try makeOrigin()
        origin.hold("/a.mp4")
        let client = try RawClient(port: origin.port)
        try client.send(client.request("/a.mp4", range: "bytes=0-9"))
        #expect(try client.readHead().status == 206)
        #expect(origin.bytesSent("/a.mp4") == 0)
        origin.release("/a.mp4")
        #expect(try client.readBody(exactly: 10) == media.bytes(0..<10))
        #expect(try client.get("/a.mp4").status == 200, "a released path is open for later requests")
    }

    @Test func heldHeadIsSentWhenAllIsReleased() throws {
        let origin = try makeOrigin()
        origin.holdHeads("/a.mp4")
        let response = try Background { [port = origin.port] in try RawClient.get(port: port, path: "/a.mp4") }
        try origin.waitForRequests("/a.mp4", count: 1)
        #expect(origin.requests("/a.mp4")[0].status == nil && !response.isFinished)
        origin.releaseAll()
        #expect(try response.value().status == 200)
    }

    @Test func releaseFollowedByHoldLetsTheWaitingGoAndHoldsTheNext() throws {
        let origin = try makeOrigin { $0.holdHead = true }
        for count in 1...20 {
            let response = try Background { [port = origin.port] in
                try RawClient.get(port: port, path: "/a.mp4", range: "bytes=0-0")
            }
            try origin.waitForRequests("/a.mp4", count: count)
            #expect(origin.requests("/a.mp4")[count - 1].status == nil)
            origin.release("/a.mp4")
            origin.holdHeads("/a.mp4")
            #expect(try response.value().status == 206)
        }
    }

    @Test func stalledBodyStopsAfterExactlySoManyBytes() throws {
        let origin = try makeOrigin { $0.stallAfter = 100_001 }
        let client = try RawClient(port: origin.port)
        try client.send(client.request("/a.mp4"))
        _ = try client.readHead()
        let before = try client.readBody(exactly: 100_001)
        #expect(origin.bytesSent("/a.mp4") == 100_001)
        origin.release("/a.mp4")
        let body = try before + client.readBody(exactly: 899_999)
        #expect(media.firstMismatch(body, at: 0) == nil)
        #expect(try client.readBody(upTo: 1).isEmpty)
    }

    @Test(arguments: ["head", "body", "stall"]) func clientThatLeavesAHeldResponseIsNoticed(gate: String) throws {
        let origin = try makeOrigin {
            switch gate {
            case "head": $0.holdHead = true
            case "body": $0.holdBody = true
            default: $0.stallAfter = 10
            }
        }
        let client = try RawClient(port: origin.port)
        try client.send(client.request("/a.mp4"))
        try origin.waitUntil("the response at its gate") {
            $0.requestCount("/a.mp4") == 1 && (gate != "stall" || $0.bytesSent("/a.mp4") == 10)
        }
        client.close()
        try origin.waitUntil("the abort") { $0.requests("/a.mp4")[0].aborted && $0.openConnections == 0 }
        #expect(!origin.requests("/a.mp4")[0].finished)
    }

    @Test func clientThatLeavesWhileTheOriginSendsIsNoticed() throws {
        let origin = try ScriptedOrigin()
        origin.serve("/huge", Media(seed: 1, size: 100_000_000_000))
        let client = try RawClient(port: origin.port, receiveBuffer: 16 * 1024)
        try client.send(client.request("/huge"))
        _ = try client.readBody(exactly: client.readHead().status)
        client.close()
        try origin.waitUntil("the abort") { $0.requests("/huge")[0].aborted }
        #expect(origin.bytesSent("/huge") < 10_000_000)
    }

    @Test func clientThatReadsNothingIsSentNoMoreThanTheBuffersHold() throws {
        let origin = try ScriptedOrigin()
        origin.serve("/huge", Media(seed: 1, size: 100_000_000_000))
        let client = try RawClient(port: origin.port, receiveBuffer: 16 * 1024)
        try client.send(client.request("/huge"))
        _ = try client.readHead()
        try origin.waitUntil("a begin") { $0.bytesSent("/huge") > 0 }
        #expect(origin.bytesSent("/huge") < 1_000_000)
    }

    @Test func pacedBodyArrivesWholeAndLeavingItIsNoticed() throws {
        let origin = try makeOrigin { ($0.bytesPerSecond, $0.latency) = (20_000_000, .milliseconds(1)) }
        #expect(
            try media.difference(RawClient.get(port: origin.port, path: "/a.mp4").body, from: 0..<media.size) == nil)
        origin.script("/a.mp4") { $0.bytesPerSecond = 1 }
        let client = try RawClient(port: origin.port)
        try client.send(client.request("/a.mp4"))
        _ = try client.readBody(exactly: client.readHead().status == 200 ? 1 : 0)
        client.close()
        try origin.waitUntil("the abort") { $0.requests("/a.mp4")[1].aborted }
        #expect(origin.requests("/a.mp4")[1].bodyBytesSent == 1)
    }

    @Test func stoppedOriginEndsHeldResponsesAndRefusesConnectionsUntilItIsBack() throws {
        let origin = try makeOrigin { $0.holdHead = true }
        let client = try RawClient(port: origin.port)
        try client.send(client.request("/a.mp4"))
        try origin.waitForRequests("/a.mp4", count: 1)
        origin.stop()
        #expect(throws: RawClient.ResponseError.closedBeforeHead) { try client.readHead() }
        #expect(throws: SystemError("connect port \(origin.port)", ECONNREFUSED)) { try RawClient(port: origin.port) }
        #expect(!origin.requests("/a.mp4")[0].aborted)
        let again = try ScriptedOrigin(port: origin.port)
        #expect(try RawClient.get(port: again.port, path: "/a.mp4").status == 404)
    }

    @Test func vainWaitSaysWhatForAndWhatHappenedInstead() throws {
        let origin = try makeOrigin()
        _ = try RawClient.get(port: origin.port, path: "/a.mp4", range: "bytes=0-9")
        let error = try #require(throws: DeadlinePassed.self) {
            try origin.waitForRequests("/b.mp4", count: 1, within: .zero)
        }
        #expect(
            "\(error)" == "waited in vain for 1 requests for /b.mp4 at the origin; instead:\n"
                + "#0 GET /a.mp4 bytes=0-9 → 206, 10 bytes, finished")
    }
}
