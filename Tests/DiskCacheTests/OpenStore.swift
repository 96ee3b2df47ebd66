import Activity
import CachePolicy
import Foundation
import HTTPModel
import Logging
import Synchronization
import TestSupport

@testable import DiskCache

/// Not the one that the modules under test count in debug builds.
typealias Mutex = Synchronization.Mutex

/// A store on a temporary directory, and how tests fill, read and measure it. What the store does on its queue and
/// threads is waited for, and what it does each second is left to the test, so that one thread tells a story.
///
/// Chunks have 4 KiB and extents 256 KiB, unless told otherwise.
final class OpenStore: Sendable {
    /// Asked to leave so much free, a store finds no room.
    static let wholeDisk: Int64 = {
        var info = statvfs()
        precondition(statvfs(TemporaryDirectory.usualParent, &info) == 0)
        return Int64(info.f_blocks) * Int64(info.f_frsize) - 1
    }()

    static let small = ChunkGeometry(chunkSize: 4096)!

    let directory: TemporaryDirectory
    private let current = Mutex<CacheStore?>(nil)
    let metrics = ProxyMetrics()

    /// - Parameter directory: of an earlier store that was closed; nil makes a new one.
    init(
        _ directory: TemporaryDirectory? = nil, maxSize: Int64 = 1 << 30, minFree: Int64 = 0,
        geometry: ChunkGeometry = OpenStore.small,
        holes: StoreConfiguration.Holes? = nil
    ) throws {
        self.directory = try directory ?? TemporaryDirectory()
        var configuration = StoreConfiguration(directory: self.directory.path)
        configuration.maxSize = maxSize
        configuration.minFree = minFree
        configuration.geometry = geometry
        configuration.holes = holes
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        let opened = try CacheStore(configuration, metrics: metrics, logger: logger)
        opened.queue.stopTimer()
        current.withLock { $0 = opened }
    }

    /// Not to be asked for once it is closed.
    var store: CacheStore { current.withLock { $0! } }

    /// Closes the store in order, and waits until nobody has it any more: only then is the directory free for the next.
    func close() throws {
        catchUp()
        try store.close()
        current.withLock { $0 = nil }
        try eventually("a closed store that nobody keeps") { CacheOwner.current(of: directory.path) == nil }
    }

    /// What the next session finds. Generations must have been let go of.
    func reopened() throws -> OpenStore {
        let (maxSize, geometry, holes) = (
            store.configuration.maxSize, store.configuration.geometry, store.configuration.holes
        )
        try close()
        return try OpenStore(directory, maxSize: maxSize, geometry: geometry, holes: holes)
    }

    /// What the next session finds after this one was killed at this moment: a copy.
    /// - Parameter sparse: whether the copy has holes: cp's `--sparse`.
    func killed(sparse: String = "always") throws -> OpenStore {
        let copy = try TemporaryDirectory()
        // On the queue, where no checkpoint or eviction can run meanwhile.
        try store.queue.sync { _ in
            let outcome = try ChildProcess.run(
                "/bin/cp", ["-a", "--sparse=\(sparse)", directory.path + "/.", copy.path])
            guard outcome.exit == .exited(0) else { throw Unexpected("cp: \(outcome.stderr)") }
        }
        return try OpenStore(
            copy, maxSize: store.configuration.maxSize, geometry: store.configuration.geometry,
            holes: store.configuration.holes)
    }

    // MARK: Filling

    static func head(etag: String = "\"v1\"") -> GenerationHead {
        let fields = HeaderFields([.init(name: "ETag", value: etag), .init(name: "Content-Type", value: "video/mp4")])
        return GenerationHead(
            status: 200, fields: fields, finalURL: "https://cdn.example/film.mp4", storedAt: 1_700_000_000)
    }

    static func key(_ name: String) -> CacheKey { CacheKey(text: "https://example.com/\(name)") }

    func make(_ name: String, length: Int64?) throws -> Generation {
        try store.makeGeneration(Self.key(name), head: Self.head(), length: length)
    }

    /// A generation that holds the parts of a medium that lie in `ranges`, which begin and end at chunks.
    func make(_ name: String, _ media: Media, filling ranges: Range<Int64>...) throws -> Generation {
        let generation = try make(name, length: media.size)
        for range in ranges { try fill(generation, media, range) }
        return generation
    }

    /// - Throws: where the store does not take all of it.
    func fill(_ generation: Generation, _ media: Media, _ range: Range<Int64>) throws {
        let writer = ChunkWriter(generation, at: range.lowerBound, stopsAtPresent: false, in: store)
        guard case .taken = writer.append(media, range.count) else { throw Unexpected("there is no room for \(range)") }
    }

    // MARK: Finding

    func load(_ name: String) throws -> Generation? {
        let found = Monitor<Result<Generation?, StoreError>?>(nil)
        store.load(Self.key(name)) { result in found.update { $0 = result } }
        return try found.wait(for: "the look-up of \(name)") { $0 }.get()
    }

    /// The index's row, whatever is in memory.
    var rows: IndexRows { store.core.index.rows }

    func row(_ name: String) throws -> IndexRows.GenerationRow? { try rows.generation(of: Self.key(name)) }

    /// Which chunks the index calls present, by extent.
    func rows(of id: GenerationID) throws -> [Int: Presence] {
        guard let row = try rows.generation(id) else { return [:] }
        return Dictionary(
            uniqueKeysWithValues: (try rows.extents(of: row) ?? []).map { ($0.ordinal, $0.present) })
    }

    // MARK: What the store does by itself, now

    /// Closes what nobody has open, as the store does each second.
    func closeUnused() { _ = store.queue.sync { $0.closer.closeUnused() } }

    func checkpoint() { store.queue.sync { $0.checkpointer.checkpoint(.all) } }

    @discardableResult
    func evict(_ bytes: Int64) -> Int64 { store.queue.sync { $0.evictor.evict(bytes) } }

    func makeRoom() throws -> Bool {
        let outcome = Monitor<Bool?>(nil)
        store.makeRoom { found in outcome.update { $0 = found } }
        return try outcome.wait(for: "room") { $0 }
    }

    func verify(_ generation: Generation, extent ordinal: Int) throws {
        let isDone = Monitor(false)
        store.verifier.verify(generation, extent: ordinal) { isDone.update { $0 = true } }
        try isDone.wait(for: "verification") { $0 ? () : nil }
    }

    func warm(_ generation: Generation, _ range: Range<Int64>) throws -> Bool {
        let outcome = Monitor<Bool?>(nil)
        store.warm(generation, range) { isWarm in outcome.update { $0 = isWarm } }
        return try outcome.wait(for: "warming") { $0 }
    }

    /// Waits until the store's threads and its queue have done what was asked of them, and have let go of it.
    func catchUp() {
        catchUp(store.readers, threads: 4)
        catchUp(store.clerks, threads: 2)
        catchUp(store.scrubbers, threads: 2)
        store.queue.wait()
    }

    /// As many at once as there are threads: each has come to the end of what it did before.
    private func catchUp(_ pool: BlockingPool, threads: Int) {
        let arrived = Monitor(0)
        for _ in 0..<threads {
            pool.run {
                arrived.update { $0 += 1 }
                try? arrived.wait(for: "the other threads") { $0 == threads ? () : nil }
            }
        }
        try? arrived.wait(for: "the store's threads") { $0 == threads ? () : nil }
    }

    // MARK: The disk

    func path(_ generation: Generation) -> String { store.core.files.path(of: generation.id) }

    /// All files of generations.
    var dataFiles: [String] {
        let data = directory.file("data")
        let names = (try? FileManager.default.subpathsOfDirectory(atPath: data)) ?? []
        return names.filter { !$0.hasSuffix("/") && $0.contains("/") }.map { "\(data)/\($0)" }
    }

    /// What the data files really take.
    var dataBytes: Int64 { dataFiles.reduce(0) { $0 + allocatedBytes($1) } }
}

/// Allocated bytes of a file; 0 where there is none.
func allocatedBytes(_ path: String) -> Int64 {
    var info = stat()
    return stat(path, &info) == 0 ? Int64(info.st_blocks) * 512 : 0
}

extension ChunkWriter {
    /// Appends the next `count` bytes of a medium, as many as there are.
    func append(_ media: Media, _ count: Int) -> Outcome {
        media.bytes(position..<min(position + Int64(count), media.size)).withUnsafeBytes { append($0) }
    }
}

/// `ChunkWriter.Outcome` for `==`.
enum Taken: Equatable {
    case taken(Int), noRoom(Int), met(Int), failed

    init(_ outcome: ChunkWriter.Outcome) {
        switch outcome {
        case .taken(let count): self = .taken(count)
        case .noRoom(let count): self = .noRoom(count)
        case .met(let count): self = .met(count)
        case .failed: self = .failed
        }
    }
}

extension Generation {
    /// The bits of present chunks, by extent.
    var presence: [Presence] {
        let chunks = chunks
        let count = chunks.length.map { geometry.extentCount(length: $0) } ?? (chunks.extents.ordinals.last ?? -1) + 1
        return (0..<count).map { chunks.extents[$0].present }
    }

    func isPresent(_ chunk: Int) -> Bool {
        chunks.extents[geometry.extent(ofChunk: chunk)].present.contains(geometry.bit(ofChunk: chunk))
    }

    var presentChunks: [Int] {
        let length = length!
        return (0..<geometry.chunkCount(length: length)).filter(isPresent)
    }

    func leases(_ ordinal: Int) -> Int { Int(chunks.extents[ordinal].leases) }

    func touch(_ ordinal: Int, at time: Int64) { withChunks { $0.touch(ordinal, at: time) } }

    func touch(at time: Int64) { withChunks { $0.touchAll(at: time) } }

    var hasUnverified: Bool { !chunks.unverifiedExtents.isEmpty }

    /// What the file holds, whether it is present or not.
    func fileBytes(_ range: Range<Int64>) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: range.count)
        let count = try bytes.withUnsafeMutableBytes { try file.read(into: $0, at: range.lowerBound) }
        return Array(bytes[..<count])
    }

    /// What is wrong with the present chunks as parts of `media`; nil where nothing is.
    func firstWrongChunk(_ media: Media) throws -> String? {
        for chunk in presentChunks {
            let range = geometry.chunkBytes(chunk, length: media.size)
            if let difference = media.difference(try fileBytes(range), from: range) {
                return "chunk \(chunk): \(difference)"
            }
        }
        return nil
    }
}

/// What a helper, or a thread that must not go on, found wrong.
struct Unexpected: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}
