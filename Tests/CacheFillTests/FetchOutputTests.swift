import Activity
import CachePolicy
import DiskCache
import EventIO
import HTTPModel
import Logging
import TestSupport
import Testing

@testable import CacheFill

/// Where what a fetch receives goes. A chunk has 4 KiB here, an extent 256 KiB.
@Suite final class FetchOutputTests {
    private static let chunk: Int64 = 4096
    private let directory: TemporaryDirectory
    private let store: CacheStore
    private let filler: CacheFiller
    private let resource: OpenResource
    private let reader = FollowerID()

    init() throws {
        directory = try TemporaryDirectory()
        var configuration = StoreConfiguration(directory: directory.path)
        configuration.minFree = 0
        configuration.geometry = try #require(ChunkGeometry(chunkSize: Self.chunk))
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        store = try CacheStore(configuration, metrics: ProxyMetrics(), logger: logger)
        filler = CacheFiller(
            store: store, settings: FillSettings(), policy: Current(ProxyPolicy()), capacity: 64,
            metrics: ProxyMetrics(), logger: logger
        ) { 0 }
        resource = filler.resource(CacheKey(text: "https://example.com/a"))
    }

    deinit {
        do { try store.close() } catch { Issue.record(error) }
    }

    private func output(_ range: Range<Int64>) throws -> FetchOutput {
        let reach = ResourceState.Reach(window: ReadAheadWindow(limit: 32 << 20), furthest: .max)
        let status = resource.openAlone(reader, at: range.lowerBound, range, reach)
        let demand = Demand(
            url: try OriginURL(url: "https://example.com/a"), span: nil, resolvedRule: ResolvedRule())
        return FetchOutput(range, status, filler, demand, filler.metrics.origins.origin("example.com"))
    }

    private func generation(length: Int64?, etag: String? = "\"v1\"") throws -> Generation {
        var fields = HeaderFields()
        if let etag { fields.append("ETag", etag) }
        return try store.makeGeneration(
            resource.key,
            head: GenerationHead(status: 200, fields: fields, finalURL: "https://example.com/a", storedAt: 0),
            length: length)
    }

    /// One that is ready for an answer.
    private func output(_ range: Range<Int64>, of generation: Generation, surplus: Int64 = 0) throws -> FetchOutput {
        var output = try output(range)
        output.begin(generation, surplus: surplus, stopsAtPresent: true)
        return output
    }

    @discardableResult
    private func take(_ count: Int, _ output: inout FetchOutput, isLast: Bool = false) -> FetchOutput.Urgency {
        let needed = output.status.slowestFollower
        return [UInt8](repeating: 7, count: count).withUnsafeBytes {
            output.take($0, neededFrom: needed, isLast: isLast)
        }
    }

    /// Writes what is to be written, on this thread.
    private func write(_ output: inout FetchOutput, isLast: Bool = false) throws -> FetchOutput.Step {
        let next = output.nextWrite(isLast: isLast)
        let write = try #require(next)
        return output.wrote(write.run(), write)
    }

    private func next(_ output: inout FetchOutput) throws -> FetchOutput.Write {
        let write = output.nextWrite(isLast: false)
        return try #require(write)
    }

    private func hasNothingToWrite(_ output: inout FetchOutput) -> Bool { output.nextWrite(isLast: false) == nil }

    private func continues(_ output: inout FetchOutput, withRoom found: Bool) -> Bool { output.roomMade(found) }

    private func name(_ step: FetchOutput.Step) -> String {
        switch step {
        case .more: "more"
        case .complete: "complete"
        case .beyond: "beyond"
        case .met: "met"
        case .noRoom: "no room"
        case .failed: "failed"
        case .closed: "closed"
        }
    }

    // MARK: Which bytes

    @Test func whatComesGoesIntoTheGenerationUntilAllThatIsWantedIsThere() throws {
        let generation = try generation(length: 3 * Self.chunk)
        var output = try output(0..<2 * Self.chunk, of: generation)
        take(5000, &output)
        #expect(output.received == 5000 && output.position == 0)
        #expect(name(try write(&output)) == "more")
        #expect(output.position == 5000 && output.delivered == 5000)
        #expect(generation.presentBytes(of: 0..<3 * Self.chunk) == Self.chunk)
        take(3192, &output)
        #expect(name(try write(&output)) == "complete")
        #expect(generation.presentBytes(of: 0..<3 * Self.chunk) == 2 * Self.chunk)
        output.close()
    }

    @Test func whatComesBeyondWhatIsWantedIsNotWritten() throws {
        let generation = try generation(length: 3 * Self.chunk)
        var output = try output(0..<Self.chunk, of: generation)
        take(5000, &output)
        #expect(name(try write(&output)) == "beyond")
        #expect(output.position == Self.chunk)
        output.close()
    }

    /// A suffix begins anywhere, and a whole answer at its beginning.
    @Test func bytesBeforeWhatIsWantedAreDropped() throws {
        var output = try output(0..<Self.chunk, of: generation(length: Self.chunk), surplus: 150)
        take(100, &output)
        #expect(output.received == 0)
        #expect(hasNothingToWrite(&output) == true)
        take(100, &output)
        #expect(output.received == 50)
        output.close()
    }

    /// RFC 9110 §14.4
    @Test func nothingIsTakenBeyondWhatTheAnswerSaysItBrings() throws {
        var output = try output(0..<Self.chunk, of: generation(length: Self.chunk))
        output.expect(0..<10)
        take(100, &output)
        #expect(output.received == 10 && output.isAnswered)
        _ = try write(&output)
        // The next one tells for itself.
        output.beginAnswer()
        #expect(output.isAnswered == false)
        output.close()
    }

    @Test func presentBytesEndIt() throws {
        let generation = try generation(length: 3 * Self.chunk)
        let writer = ChunkWriter(generation, at: Self.chunk, stopsAtPresent: true, in: store)
        _ = [UInt8](repeating: 1, count: Int(Self.chunk)).withUnsafeBytes { writer.append($0) }
        var output = try output(0..<3 * Self.chunk, of: generation)
        take(5000, &output)
        #expect(name(try write(&output)) == "met")
        #expect(output.position == Self.chunk)
        output.close()
    }

    // MARK: How answers end

    @Test(
        arguments: [
            // What is wanted, what the answer says it brings, what has come, and what that means.
            (0..<4096, 0..<4096, 4096, .complete), (0..<4096, 0..<4096, 4000, .short(by: 96)),
            // Little at a time is not asked for again and again.
            (0..<200_000, 0..<10_000, 10_000, .short(by: 190_000)), (0..<200_000, 0..<70_000, 70_000, .inPart),
            (0..<200_000, 0..<70_000, 69_999, .short(by: 130_001)), (0..<Int64.max, 0..<Int64.max, 4000, .complete),
        ] as [(Range<Int64>, Range<Int64>, Int, FetchOutput.AnswerEnd)])
    func answerEndsInFullOrShort(
        wanted: Range<Int64>, answered: Range<Int64>, count: Int, end: FetchOutput.AnswerEnd
    ) throws {
        let generation = try generation(length: wanted.upperBound < .max ? 1 << 20 : nil)
        var output = try output(wanted, of: generation)
        output.expect(answered)
        take(count, &output)
        _ = try write(&output)
        #expect(output.answerEnded() == end)
        // Without a length the end of the body is the resource's.
        if wanted.upperBound == .max { #expect(generation.length == 4000) }
        output.close()
    }

    @Test func answerThatOnlyRepeatsIsShort() throws {
        var output = try output(0..<200_000, of: try generation(length: 1 << 20))
        take(100_000, &output)
        _ = try write(&output)
        output.beginAnswer()
        output.expect(30_000..<100_000)
        output.resume(surplus: 70_000)
        #expect(output.answerEnded() == .short(by: 100_000))
        output.close()
    }

    @Test func answerWithoutAHeadBringsNothing() throws {
        var output = try output(0..<10)
        #expect(output.answerEnded() == .noHead)
    }

    // MARK: When

    @Test func firstBytesThatSomebodyWaitsForAreWrittenAtOnce() throws {
        var output = try output(0..<1 << 20, of: generation(length: 1 << 20))
        #expect(take(100, &output) == .first)
        #expect(take(100, &output) == .afterCallback)
        #expect(take(100, &output) == .later)
        output.flushed()
        #expect(take(100, &output) == .afterCallback)
        #expect(take(256 << 10, &output) == .now)
        output.close()
    }

    /// A small file goes in one piece.
    @Test func shortAnswerIsWrittenAfterTheCallback() throws {
        var output = try output(0..<64 << 10, of: generation(length: 64 << 10))
        #expect(take(100, &output) == .afterCallback)
        output.close()
    }

    @Test func longWriteIsForAnotherThreadAndTheNextBytesComeInMeanwhile() throws {
        var output = try output(0..<2 << 20, of: generation(length: 2 << 20))
        take(100 << 10, &output)
        let write = try next(&output)
        #expect(write.isLong && output.staging.isWriting && hasNothingToWrite(&output))
        take(512 << 10, &output)
        #expect(output.isFull && output.position == 0 && output.received == 612 << 10)
        #expect(name(output.wrote(write.run(), write)) == "more")
        #expect(output.isFull == false && output.position == 100 << 10)
        output.close()
    }

    /// What is left of it would be asked for again.
    @Test func whoLeavesHasTheChunkFinishedAndNoMore() throws {
        var output = try output(0..<64 << 10, of: generation(length: 64 << 10))
        take(3000, &output)
        #expect(name(try write(&output)) == "more")
        #expect(output.isInChunk && output.isChunkWorthFinishing)
        #expect(take(2000, &output, isLast: true) == .now)
        _ = try write(&output, isLast: true)
        #expect(output.position == Self.chunk && !output.isInChunk)
        output.close()
    }

    /// Nor while another thread writes: a slow disk would have half a megabyte sent for nothing.
    @Test func whoLeavesDuringALongWriteHasTheChunkFinishedAndNoMore() throws {
        var output = try output(0..<2 << 20, of: generation(length: 2 << 20))
        take(100_000, &output)
        let write = try next(&output)
        let before = isFull(output, isLast: true)
        take(2400, &output, isLast: true)
        let (during, isFollowed) = (isFull(output, isLast: true), !isFull(output, isLast: false))
        #expect(write.isLong && !before && during && isFollowed)
        #expect(name(output.wrote(write.run(), write)) == "more")
        let after = isFull(output, isLast: true)
        #expect(output.isInChunk && !after)
        _ = try self.write(&output, isLast: true)
        #expect(output.position == 102_400)
        output.close()
    }

    private func isFull(_ output: borrowing FetchOutput, isLast: Bool) -> Bool {
        if case .full = output.readiness(isLast: isLast) { true } else { false }
    }

    // MARK: Room

    @Test func withoutRoomItWaitsAndGoesOnWithTheRest() throws {
        var output = try output(0..<Self.chunk, of: generation(length: Self.chunk))
        take(4096, &output)
        let write = try next(&output)
        #expect(name(output.wrote(.noRoom(taken: 0), write)) == "no room")
        #expect(output.isFull && output.isWaitingForRoom && hasNothingToWrite(&output))
        #expect(continues(&output, withRoom: true) == true)
        #expect(name(try self.write(&output)) == "complete")
        output.close()
    }

    /// The rest can be asked for again, past the cache.
    @Test func whatCanBeAskedForAgainDoesNotSpill() throws {
        var output = try output(0..<Self.chunk, of: generation(length: Self.chunk))
        take(100, &output)
        let write = try next(&output)
        _ = output.wrote(.noRoom(taken: 0), write)
        #expect(continues(&output, withRoom: false) == false)
        output.close()
    }

    @Test func whatComesInNoOtherWayGoesOnInMemory() throws {
        let generation = try generation(length: 2 * Self.chunk, etag: nil)
        var output = try output(0..<2 * Self.chunk, of: generation)
        take(5000, &output)
        _ = try write(&output)
        take(100, &output)
        let write = try next(&output)
        _ = output.wrote(.noRoom(taken: 0), write)
        #expect(continues(&output, withRoom: false) == true)
        let buffer = try #require(output.writer?.generation)
        #expect(!buffer.isStored && generation.isRetired && output.status.read({ $0.spill != nil }) == true)
        take(3092, &output)
        #expect(name(try self.write(&output)) == "complete")
        #expect(buffer.coverage(of: Self.chunk..<2 * Self.chunk) == .whole)
        output.close()
    }

    // MARK: The end

    @Test func whatIsBeingWrittenAtTheEndIsOfNoAccount() throws {
        var output = try output(0..<2 << 20, of: generation(length: 2 << 20))
        take(100 << 10, &output)
        let write = try next(&output)
        output.close()
        #expect(name(output.wrote(write.run(), write)) == "closed")
        #expect(hasNothingToWrite(&output) == true)
    }

    @Test func whatAReaderHasPassedIsNotHeldForIt() throws {
        let extent = 64 * Self.chunk
        var output = try output(0..<8 * extent, of: generation(length: 8 * extent))
        for _ in 0..<3 {
            take(Int(extent), &output)
            _ = try write(&output)
        }
        #expect(output.held.leases.count == 3)
        output.status.advance(reader, to: 2 * extent)
        take(Int(extent), &output)
        _ = try write(&output)
        #expect(output.held.leases.count == 2)
        output.close()
        #expect(output.held.leases.count == 0)
    }
}
