import CachePolicy
import Foundation
import HTTPModel
import Logging
import Synchronization

/// The files of generations: their paths, and which of them may hold blocks that no row describes. Can be used from any
/// thread.
///
/// Lock order: under its lock, `unfinished` asks for open generations, their states and this type's own state.
final class GenerationFiles: Sendable {
    private let directory: String
    let unfinished: UnfinishedFiles
    private let faults: FaultLog
    private let logger: Logger
    private let ids: Mutex<GenerationID.Series>
    private let state = Mutex(State())
    private let holes: Atomic<StoreConfiguration.Holes>
    /// The file system's block, of which each file and directory takes at least one.
    private let block: Int64

    private struct State {
        /// Directories made in this session whose names are not durable yet, by the identifiers' highest byte.
        var newShards: Set<UInt64> = []
        /// Files that the disk failed to punch or remove: the next session tries again.
        var leftUnfinished: Set<GenerationID> = []
    }

    /// - Parameters:
    ///   - directory: the cache directory.
    ///   - block: the size of the file system's blocks; nil to ask it.
    init(
        in directory: String, _ unfinished: UnfinishedFiles, ids: GenerationID.Series,
        _ holes: StoreConfiguration.Holes,
        block: Int64? = nil, _ faults: FaultLog, _ logger: Logger
    ) {
        (self.directory, self.unfinished, self.faults, self.logger) = (directory, unfinished, faults, logger)
        self.ids = Mutex(ids)
        self.holes = Atomic(holes)
        self.block = block ?? FileSystem.blockSize(of: directory)
    }

    func makeID() -> GenerationID { ids.withLock { $0.make() } }

    /// If false, whole generations are evicted.
    var punchesHoles: Bool { holes.load(ordering: .relaxed) == .punched }

    /// If false, gaps in files take blocks, too.
    var keepsHoles: Bool { holes.load(ordering: .relaxed) != .filled }

    /// Reserved for a file beside its chunks, until that is measured. Blocks of exFAT may have 32 KiB and more.
    var fileOverhead: Int64 {
        keepsHoles ? CapacityLedger.fileOverhead : max(CapacityLedger.fileOverhead, block +| CapacityLedger.blockSize)
    }

    /// What directories take, where that is more than the files' overhead covers.
    var directoryBytes: Int64 {
        keepsHoles ? 0 : Int64(FileSystem.entries(directory + "/data").count) *| block
    }

    /// Punching failed, although it worked at the start or was not tried.
    func cannotPunchHoles() {
        guard holes.compareExchange(expected: .punched, desired: .kept, ordering: .relaxed).exchanged else { return }
        logger.notice("this file system cannot punch holes, so whole files are evicted")
    }

    // MARK: Names

    func path(of id: GenerationID) -> String {
        String(upTo: directory.utf8.count + 1 + Self.relativeBytes) { text in
            text.append(text: directory)
            text.append("/")
            Self.write(id, to: &text)
        }
    }

    /// The path below the cache directory.
    static func relativePath(of id: GenerationID) -> String {
        String(upTo: relativeBytes) { write(id, to: &$0) }
    }

    private static let relativeBytes = "data/ab/abcdef0123456789".utf8.count

    private static func write(_ id: GenerationID, to text: inout LineWriter) {
        let name = id.description
        text.append("data/")
        text.append(text: String(name.unicodeScalars.prefix(2)))
        text.append("/")
        text.append(text: name)
    }

    /// Visits the files that have a generation's name in the right place. Other files there are not ours.
    /// - Parameter visit: returns false to stop.
    /// - Returns: whether all were visited.
    @discardableResult
    func visitAll(_ visit: (GenerationID) -> Bool) -> Bool {
        let data = directory + "/data"
        for shard in FileSystem.entries(data) {
            for name in FileSystem.entries("\(data)/\(shard)") {
                guard let id = GenerationID(fileName: name), name.prefix(2) == shard, name == id.description else {
                    continue
                }
                guard visit(id) else { return false }
            }
        }
        return true
    }

    // MARK: Making and removing

    func make(_ id: GenerationID, length: Int64?) throws(StoreError) -> SparseFile {
        let path = path(of: id)
        do throws(StoreError) {
            return try SparseFile(path: path, length: length, creating: true, keepsHoles: keepsHoles)
        } catch .system("open", _, ENOENT) {
            // It is the first file of its directory.
            try makeShard(of: id)
            return try SparseFile(path: path, length: length, creating: true, keepsHoles: keepsHoles)
        }
    }

    private func makeShard(of id: GenerationID) throws(StoreError) {
        let path = "\(directory)/data/\(id.description.prefix(2))"
        let isNew = mkdir(path, 0o700) == 0
        guard isNew || errno == EEXIST else { throw .lastSystemError("mkdir", path) }
        if isNew { state.withLock { _ = $0.newShards.insert(id.value >> 56) } }
    }

    func open(_ id: GenerationID, length: Int64) throws(StoreError) -> SparseFile {
        try SparseFile(path: path(of: id), length: length, creating: false)
    }

    /// - Returns: whether it is gone. If not, it stays counted, and the next session tries again.
    func remove(_ id: GenerationID) -> Bool {
        let isGone = faults.report("remove a file") { () throws(StoreError) in try FileSystem.remove(path(of: id)) }
        if !isGone { leaveUnfinished(id) }
        return isGone
    }

    // MARK: Durability

    /// Makes everything written to generations durable, in one call.
    /// - Returns: whether that succeeded.
    func syncAll(_ generations: [Generation]) -> Bool {
        do throws(StoreError) { try FileSystem.syncDisk(of: directory) } catch { return false }
        for generation in generations { generation.state.withLock { $0.isNameSynced = true } }
        return true
    }

    /// Makes a generation's bytes durable, and once also its file's name, before the index describes it.
    func sync(_ generation: Generation) throws(StoreError) {
        try generation.file.sync()
        guard !generation.state.withLock(\.isNameSynced) else { return }
        let newShards = state.withLock { $0.newShards }
        if !newShards.isEmpty {
            try FileSystem.syncDirectory(directory + "/data")
            state.withLock { $0.newShards.subtract(newShards) }
        }
        try FileSystem.syncDirectory((generation.file.path as NSString).deletingLastPathComponent)
        generation.state.withLock { $0.isNameSynced = true }
    }

    // MARK: Unfinished files

    /// Lists files as unfinished before their rows change.
    /// - Parameter open: the file's generation, if it is open; one that is already listed is skipped.
    func list(_ ids: [GenerationID], _ open: (GenerationID) -> Generation?) throws(StoreError) {
        let unlisted = ids.map { (id: $0, open: open($0)) }.filter { $0.open?.state.withLock(\.isListed) != true }
        guard !unlisted.isEmpty else { return }
        // `begin` keeps the list from being shortened until the generations know that they are listed.
        try unfinished.begin(unlisted.map(\.id))
        for file in unlisted { file.open?.state.withLock { $0.isListed = true } }
        unfinished.end()
    }

    /// The file keeps blocks that no row describes: the next session tries again.
    func leaveUnfinished(_ id: GenerationID) { state.withLock { _ = $0.leftUnfinished.insert(id) } }

    var leftUnfinished: Set<GenerationID> { state.withLock { $0.leftUnfinished } }
}
