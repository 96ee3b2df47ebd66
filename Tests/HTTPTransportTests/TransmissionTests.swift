import Foundation
import HTTPTransport
import TestSupport
import Testing

/// The two ways from a mapped file to a socket.
@Suite struct TransmissionTests {
    private let directory: TemporaryDirectory
    private let media = Media(seed: 31, size: 24 << 20)

    init() throws {
        directory = try TemporaryDirectory()
        try Data(media.allBytes).write(to: URL(fileURLWithPath: directory.file("f")))
    }

    /// Answers with the part of the file that the target names, `/from-to`; other targets with a short text.
    /// - Parameter spare: what takes the place of bytes that cannot be read; nil for nothing.
    private func server(
        _ transmission: Transmission, _ file: MappedFile, chunked: Bool = false, spare: Media? = nil
    ) throws -> TestServer {
        var limits = TransportLimits()
        limits.transmission = transmission
        return try TestServer(limits: limits) { exchange in
            let numbers = exchange.request.target.dropFirst().split(separator: "-").compactMap { Int64($0) }
            guard numbers.count == 2 else { return exchange.respond(200, text: "alive") }
            exchange.respond(
                Response(206, length: chunked ? nil : numbers[1] - numbers[0]),
                body: FileSource(file, numbers[0]..<numbers[1], spare: spare))
        }
    }

    @Test(arguments: Transmission.allCases, [false, true])
    func mappedFileArrivesAsItIs(transmission: Transmission, chunked: Bool) throws {
        var random = SplitMix64.forTest("mappedFileArrivesAsItIs")
        let server = try server(transmission, MappedFile(directory.file("f"), media.size), chunked: chunked)
        let client = try server.client()
        var ranges: [Range<Int64>] = [0..<media.size, 0..<1, media.size - 1..<media.size, 4095..<4097]
        for _ in 0..<20 {
            let start = Int64.random(in: 0..<media.size, using: &random)
            ranges.append(start..<min(media.size, start + Int64.random(in: 1...3_000_000, using: &random)))
        }
        for range in ranges {
            let answer = try client.get("/\(range.lowerBound)-\(range.upperBound)")
            #expect(media.difference(answer.body, from: range) == nil, "\(range)")
        }
    }

    @Test(arguments: Transmission.allCases)
    func slowClientGetsTheFileAsItIs(transmission: Transmission) throws {
        let server = try server(transmission, MappedFile(directory.file("f"), media.size))
        let client = try server.client(receiveBuffer: 8192)
        let range: Range<Int64> = 77..<8 << 20
        let answer = try client.get("/\(range.lowerBound)-\(range.upperBound)")
        #expect(media.difference(answer.body, from: range) == nil)
    }

    // Where a page of the file is gone the kernel says so; this process would get SIGBUS.
    @Test(arguments: Transmission.allCases, [0, 1 << 20])
    func fileThatIsTruncatedUnderAnAnswerCutsItAndNothingElse(transmission: Transmission, length: Int64) throws {
        let server = try server(transmission, MappedFile(directory.file("f"), media.size))
        let client = try server.client(receiveBuffer: 4096), other = try server.client()
        try client.send(client.request("/0-\(media.size)"))
        _ = try client.readHead()
        let first = try client.readBody(exactly: 1000)
        // More than the sockets hold is still to come.
        #expect(truncate(directory.file("f"), off_t(length)) == 0)
        var body = first
        #expect(throws: RawClient.ResponseError.self) {
            while true {
                let piece = try client.readBody(upTo: 1 << 20)
                if piece.isEmpty { break }
                body += piece
            }
        }
        #expect(Int64(body.count) < media.size)
        // What sendfile has queued are the file's own pages: the kernel clears what is cut off of a large one also
        // there.
        let trusted = transmission == .sendfile ? body.prefix(max(Int(length), first.count)) : body[...]
        #expect(media.firstMismatch(Array(trusted), at: 0) == nil)
        #expect(try other.get("/alive").text == "alive\n")
        #expect(try server.client().get("/alive").text == "alive\n")
    }

    /// The source has them from elsewhere: framing and bytes are as if nothing had happened.
    @Test(arguments: Transmission.allCases, [false, true])
    func bytesThatCannotBeReadAreDeliveredAgain(transmission: Transmission, chunked: Bool) throws {
        let file = try MappedFile(directory.file("f"), media.size)
        let server = try server(transmission, file, chunked: chunked, spare: media)
        #expect(truncate(directory.file("f"), 1 << 20) == 0)
        let client = try server.client()
        for range: Range<Int64> in [0..<media.size, 2 << 20..<4 << 20, (1 << 20) - 5000..<(1 << 20) + 100_000] {
            let answer = try client.get("/\(range.lowerBound)-\(range.upperBound)")
            #expect(media.difference(answer.body, from: range) == nil, "\(range)")
        }
        #expect(server.metrics.errors.values.isEmpty)
    }

    @Test func unreadableFileIsCounted() throws {
        let server = try server(.mapping, MappedFile(directory.file("f"), media.size))
        #expect(truncate(directory.file("f"), 0) == 0)
        #expect(throws: RawClient.ResponseError.self) { try server.client().get("/0-100") }
        #expect(server.metrics.errors.values == ["disk-read": 1])
    }
}

/// A file and a mapping of it.
/// `@unchecked Sendable` because nothing of it changes.
private final class MappedFile: @unchecked Sendable {
    let descriptor: Int32
    let bytes: UnsafeRawBufferPointer

    init(_ path: String, _ length: Int64) throws {
        descriptor = open(path, O_RDONLY | O_CLOEXEC)
        let address = mmap(nil, Int(length), PROT_READ, MAP_SHARED, descriptor, 0)
        guard let address, address != MAP_FAILED else { throw SystemError("mmap \(path)") }
        bytes = UnsafeRawBufferPointer(start: address, count: Int(length))
    }

    deinit {
        munmap(UnsafeMutableRawPointer(mutating: bytes.baseAddress!), bytes.count)
        close(descriptor)
    }
}

private final class FileSource: BodySource {
    private let file: MappedFile
    private let spare: Media?
    private var rest: Range<Int64>
    private var isSparing = false
    private var spared: BytesSource?

    init(_ file: MappedFile, _ range: Range<Int64>, spare: Media?) {
        self.file = file
        self.spare = spare
        rest = range
    }

    func takeBack(_ count: Int) -> Bool {
        guard spare != nil else { return false }
        rest = rest.lowerBound - Int64(count)..<rest.upperBound
        isSparing = true
        return true
    }

    func next(limit: Int) -> BodyStep {
        guard !rest.isEmpty else { return .end }
        // In odd pieces, so that they end elsewhere than the lost ones.
        let part = rest.lowerBound..<min(rest.upperBound, rest.lowerBound + Int64(isSparing ? min(limit, 7001) : limit))
        rest = part.upperBound..<rest.upperBound
        if isSparing, let spare {
            let spared = BytesSource(Array(spare.bytes(part)))
            self.spared = spared
            return spared.next(limit: part.count)
        }
        let bytes = UnsafeRawBufferPointer(rebasing: file.bytes[Int(part.lowerBound)..<Int(part.upperBound)])
        return .span(BodySpan(bytes: bytes, file: (file.descriptor, part.lowerBound)))
    }

    func finish() {}
}
