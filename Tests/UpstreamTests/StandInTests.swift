import TestSupport
import Testing

/// What would pass in silence if a stand-in were wrong. Whatever else `TestSupport` does shows in the tests that use it.
@Suite struct StandInTests {
    private let media = Media(seed: 3, size: 200_000)

    private func makeOrigin(_ change: (inout ScriptedOrigin.Behaviour) -> Void = { _ in }) throws -> ScriptedOrigin {
        let origin = try ScriptedOrigin()
        origin.serve("/a.mp4", media)
        origin.script("/a.mp4", change)
        return origin
    }

    @Test func eachWrongOrMissingByteIsFound() {
        let bytes = media.bytes(5..<150_005)
        #expect(media.difference(bytes, from: 5..<150_005) == nil)
        for index in [0, 1, 7, 65_535, 65_536, 149_999] {
            var wrong = bytes
            wrong[index] ^= 1
            #expect(media.difference(wrong, from: 5..<150_005) == "wrong from offset \(5 + index) on")
        }
        #expect(media.difference(Array(bytes.dropLast()), from: 5..<150_005) == "149999 bytes instead of 150000")
        #expect(media.firstMismatch(media.bytes(199_990..<200_010), at: 199_990) == 200_000)
        for shift: Int64 in [1, 8, 4096, 65_536] {
            #expect(media.firstMismatch(media.bytes(shift..<shift + 64), at: 0) == 0)
        }
        #expect(Media(seed: 4, size: 200_000).firstMismatch(bytes, at: 5) != nil)
        // The content does not repeat where an offset no longer fits in 32 bits.
        let far = Media(seed: 3, size: 100_000_000_000)
        #expect(far.firstMismatch(far.bytes(0..<64), at: 1 << 32) != nil)
    }

    @Test func openConnectionIsNotClosedByThePeer() throws {
        let origin = try makeOrigin()
        let client = try RawClient(port: origin.port)
        #expect(try client.get("/a.mp4").status == 200)
        #expect(try !client.isClosedByPeer(within: .zero))
    }

    /// A body without a length is whole where its connection ends in good order, and only there.
    @Test func resetIsNoOrderlyEnd() throws {
        let origin = try makeOrigin { ($0.closeDelimited, $0.cutAfter, $0.cutTimes) = (true, 1000, 2) }
        #expect(try RawClient.get(port: origin.port, path: "/a.mp4").body.count == 1000)
        origin.script("/a.mp4") { $0.cutsWithReset = true }
        #expect(throws: RawClient.ResponseError.self) { try RawClient.get(port: origin.port, path: "/a.mp4") }
    }

    /// Whoever sent the wrong validator would get the right bytes all the same.
    @Test func rangeIsAPartOnlyOfTheVersionUnderIfRange() throws {
        let origin = try makeOrigin()
        for (field, status) in [("\"v1\"", 206), ("\"v2\"", 200), ("W/\"v1\"", 200)] {
            let response = try RawClient.get(
                port: origin.port, path: "/a.mp4", range: "bytes=0-9", headers: [("If-Range", field)])
            #expect(response.status == status, "\(field)")
        }
    }
}
