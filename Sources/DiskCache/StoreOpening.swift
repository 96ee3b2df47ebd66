import Activity
import CachePolicy
import Foundation
import HTTPModel
import Logging

/// Opens a store: locks its directory, opens its index, and finds out how the last session ended.
struct StoreOpening {
    let core: StoreCore
    let pins: PinnedCopy
    let lock: DirectoryLock
    let fingerprintSeed: Int64
    /// Files that the last session listed as unfinished.
    let unfinished: Set<GenerationID>
    /// Whether the last session was closed cleanly.
    let wasClean: Bool
    /// Whether the index knows of no earlier session.
    let isNew: Bool
    /// Whether there may be files that nothing is known of.
    let isRecountDue: Bool

    /// - Throws: `StoreError`: another process has the cache open, or the directory or the index cannot be used.
    init(_ configuration: StoreConfiguration, metrics: ProxyMetrics, logger: Logger) throws(StoreError) {
        try Self.check(maxSize: configuration.maxSize, minFree: configuration.minFree, nil)
        let directory = configuration.directory
        FileSystem.makeSizeLimitAnError()
        try Self.makeDirectory(directory)
        lock = try DirectoryLock(directory: directory)
        Self.makePrivate(in: directory, logger)
        try Self.makeDirectory(directory + "/data")
        let found = try FileSystem.holes(in: directory + "/data"), holes = configuration.holes ?? found
        DiskReserve(in: directory, maxSize: configuration.maxSize).releaseIfFull()
        let index: CacheIndex
        (index, pins) = try Self.openIndex(directory, logger, metrics)
        try Self.check(maxSize: configuration.maxSize, minFree: configuration.minFree, directory)
        let ledger = CapacityLedger(
            directory: directory, limit: configuration.maxSize, minFree: configuration.minFree)
        ledger.adopt(data: try index.database.meta(.dataBytes) ?? 0)
        let previous = try index.database.meta(.session) ?? 0
        (isNew, wasClean) = (previous == 0, try index.database.meta(.isClean) ?? 1 == 1)
        isRecountDue = try Self.isRecountDue(index, isNew: isNew, wasClean: wasClean, directory)
        // After the loss of an index, session numbers must not repeat. An implausible number is ignored.
        let session =
            (1...1 << 60).contains(previous)
            ? previous + 1 : configuration.driver == nil ? Int64.random(in: 1...1 << 40) : 1
        let suspectSession = try wasClean ? index.database.meta(.suspectSession) ?? 0 : previous
        fingerprintSeed = try index.database.meta(.fingerprintSeed) ?? Int64.random(in: .min ... .max)
        try index.database.setMeta([
            (.fingerprintSeed, fingerprintSeed), (.session, session), (.isClean, 0), (.suspectSession, suspectSession),
            (.boot, FileSystem.boot ?? 0), (.isRecountDue, isRecountDue ? 1 : 0),
        ])
        try index.database.endFuture(at: AccessClock.now())
        // Even if the log is lost later, this session counts as not cleanly closed.
        try index.database.checkpointLog()
        unfinished = UnfinishedFiles.read(directory + "/unfinished")
        let faults = FaultLog(metrics, logger)
        let files = GenerationFiles(
            in: directory, try UnfinishedFiles(path: directory + "/unfinished"),
            ids: GenerationID.Series(session: session, configuration.driver), holes, faults, logger)
        core = StoreCore(
            configuration, index, ledger, files, lock, faults, metrics, logger, session: session,
            suspectSession: suspectSession)
        if !wasClean {
            logger.notice("the cache was not closed cleanly; everything in it is verified before it is served")
        }
        if !files.punchesHoles { logger.notice("this file system cannot punch holes, so whole files are evicted") }
        if !files.keepsHoles {
            logger.notice(
                "this file system keeps no holes, so gaps in incomplete files take room, too"
            )
        }
    }

    /// Killing the process loses nothing that was written. A reboot, or a new index, leaves unknown files.
    private static func isRecountDue(_ index: CacheIndex, isNew: Bool, wasClean: Bool, _ directory: String)
        throws(StoreError) -> Bool
    {
        let boot = FileSystem.boot, knownBoot = try index.database.meta(.boot),
            wasDue = try index.database.meta(.isRecountDue) == 1
        return (isNew || wasDue || !wasClean && (boot == nil || knownBoot != boot))
            && !FileSystem.entries(directory + "/data").isEmpty
    }

    /// - Parameter directory: a directory on the disk; nil if it does not exist yet.
    static func check(maxSize: Int64, minFree: Int64, _ directory: String?) throws(StoreError) {
        guard maxSize >= CapacityLedger.smallestLimit else {
            throw .setting("a cache of \(maxSize) bytes is too small to work: give it 16 MB or more")
        }
        guard minFree >= 0 else { throw .setting("the space to keep free cannot be less than 0 bytes") }
        guard let directory, let disk = FileSystem.disk(of: directory)?.size, disk > 0 else { return }
        guard minFree < disk else {
            throw .setting(
                "cannot keep \(ByteSize(bytes: minFree)) free: the whole disk has \(ByteSize(bytes: disk))")
        }
    }

    /// Creates a directory and its parents.
    private static func makeDirectory(_ path: String) throws(StoreError) {
        if mkdir(path, 0o700) == 0 { return }
        // Foundation's `deletingLastPathComponent` traps on names of one character.
        let parent = path.utf8.lastIndex(of: UInt8(ascii: "/")).map { String(path[..<$0]) } ?? ""
        if errno == ENOENT, !parent.isEmpty, parent != path {
            try makeDirectory(parent)
            if mkdir(path, 0o700) == 0 { return }
        }
        let code = errno
        var info = stat()
        guard stat(path, &info) == 0 else {
            throw .directory(
                "cannot create the cache directory \(path): \(String(errno: code))", .otherDirectory)
        }
        guard info.st_mode & S_IFMT == S_IFDIR else {
            throw .directory("the cache directory \(path) is not a directory", .otherDirectory)
        }
    }
}
