import Activity
import CachePolicy
import ControlAPI
import DiskCache
import Downloads
import EventIO
import Foundation
import HTTPModel
import Logging
import Presentations
import Reelcache

/// A cache that no proxy owns, opened by this process.
package final class OpenedCache: CacheAccess {
    private let store: CacheStore
    private let directory: String
    private let policy: ProxyPolicy
    /// The database of downloads, opened on first use.
    private var downloads: DownloadManager?
    private let downloadSettings: DownloadSettings

    /// - Parameter isFilled: see `ProxyConfiguration.withCache`.
    package init(_ configuration: ProxyConfiguration, isFilled: Bool) throws {
        directory = configuration.cacheDirectory
        policy = try configuration.policy()
        downloadSettings = try DownloadSettings(configuration)
        place = try configuration.place(configuration.baseURL)
        store = try Self.openStore(directory, isMade: isFilled)
        guard isFilled else { return }
        do {
            let size = try Self.translated { try store.report().size }
            try Self.translated {
                try store.setLimits(
                    maxSize: Self.limit(configuration, size: size), minFree: Self.minFree(configuration))
            }
        } catch {
            try? close()
            throw error
        }
    }

    /// - Parameter isMade: whether to create the cache if it does not exist.
    static func openStore(_ directory: String, isMade: Bool) throws -> CacheStore {
        if !isMade { try requireCache(directory) }
        do { try DispatchDescriptors.make() } catch { throw CacheAccessError(error) }
        var settings = StoreConfiguration(directory: directory)
        (settings.maxSize, settings.minFree, settings.evictsAhead) = (noLimit, 0, false)
        return try translated { try CacheStore(settings, metrics: ProxyMetrics(), logger: logger) }
    }

    private static let noLimit = Int64.max / 2

    static let logger: Logger = {
        var logger = Logger(label: "reelcache", factory: { StreamLogHandler.standardError(label: $0) })
        logger.logLevel = .error
        return logger.guarded(by: Current(ProxyPolicy()))
    }()

    /// A limit that evicts nothing, even if more is cached than the configuration permits: the store leaves up to 8
    /// MiB of its limit free, and something small fits in addition.
    static func limit(_ configuration: ProxyConfiguration, size: Int64) -> Int64 {
        max(configuration.maxSize, size +| (12 << 20))
    }

    /// If less is free already, nothing is evicted to change that.
    static func minFree(_ configuration: ProxyConfiguration) -> Int64 {
        var info = statvfs()
        guard statvfs(configuration.cacheDirectory, &info) == 0 else { return configuration.minFree }
        return min(configuration.minFree, Int64(clamping: info.f_bavail) *| Int64(clamping: info.f_frsize) / 2)
    }

    /// The disk usage of a cache; 0 if there is none.
    static func sizeIfThere(_ configuration: ProxyConfiguration) throws -> Int64 {
        guard access(configuration.cacheDirectory + "/index.sqlite", F_OK) == 0 else { return 0 }
        let cache = try OpenedCache(configuration, isFilled: false)
        let size = Result { try translated { try cache.store.report().size } }
        try cache.close()
        return try size.get()
    }

    /// Refuses a missing cache, because a query must not create one.
    private static func requireCache(_ directory: String) throws {
        var info = stat()
        guard stat(directory, &info) == 0 else {
            if errno == ENOENT {
                throw CacheAccessError(
                    "there is no cache at \(directory); name another with --cache-dir, or fill one with reelcache serve"
                )
            }
            throw CacheAccessError(
                "cannot use the cache directory \(directory): \(String(errno: errno))", .otherDirectory)
        }
        guard info.st_mode & S_IFMT == S_IFDIR else {
            throw CacheAccessError("the cache directory \(directory) is not a directory", .otherDirectory)
        }
        guard access(directory, R_OK | W_OK | X_OK) == 0 else {
            throw CacheAccessError(
                "cannot use the cache directory \(directory): \(String(errno: errno))", .otherDirectory)
        }
        guard access(directory + "/index.sqlite", F_OK) == 0 else {
            throw CacheAccessError(
                "there is no cache at \(directory); name another with --cache-dir, or fill one with reelcache serve")
        }
    }

    /// Saves everything and releases the cache.
    package func close() throws {
        downloads?.perform { $0.stop() }
        try Self.translated { try store.close() }
    }

    /// Translates errors of the store for people.
    static func translated<Value>(_ body: () throws -> Value) throws -> Value {
        do { return try body() } catch let error as CacheAccessError { throw error } catch {
            throw CacheAccessError(ControlError(error))
        }
    }

    // MARK: Downloads

    /// The downloads of an open store, which this process does not carry out.
    static func openDownloads(
        _ store: CacheStore, _ directory: String, _ policy: ProxyPolicy, _ settings: DownloadSettings
    ) throws -> DownloadManager {
        do throws(DownloadError) {
            return try DownloadManager(
                directory: directory, source: nil, restorePoints: StoreRestorePoints(store) { policy },
                settings: settings, clock: SystemDownloadClock(), logger: logger)
        } catch {
            throw CacheAccessError(error)
        }
    }

    /// nil if nothing was ever downloaded: a query does not create the database.
    private func knownDownloads() throws -> DownloadManager? {
        if downloads == nil, access(CacheStore.downloads(in: directory), F_OK) == 0 {
            downloads = try Self.openDownloads(store, directory, policy, downloadSettings)
        }
        return downloads
    }

    // MARK: Access

    package let place: ProxyPlace

    package func resources(_ query: ResourceQuery) throws -> ResourceListing {
        try Self.translated {
            var listing = try store.resources(query)
            PresentationContents.describe(&listing.resources, in: store, policy)
            return listing
        }
    }

    package func resource(_ url: OriginURL, listsSegments: Bool) throws -> ResourceDetail {
        try Self.translated {
            var detail = try existing(policy.find(url, store.resource), url)
            try PresentationContents.describe(&detail.resource, in: store, policy, listsSegments: listsSegments)
            return detail
        }
    }

    package func setPinned(_ isPinned: Bool, _ url: OriginURL) throws -> ResourceDetail {
        try Self.translated {
            guard try policy.find(url, { try store.setPinned(isPinned, $0) ? true : nil }) != nil else {
                throw ControlError.notCached(url.absolute)
            }
            return try resource(url, listsSegments: false)
        }
    }

    package func remove(_ url: OriginURL, isDryRun: Bool) throws -> RemovalReport {
        if let download = try knownDownloads()?.snapshots.unfinished(of: url, under: policy) {
            throw CacheAccessError.beingDownloaded(url, by: download.id)
        }
        return try Self.translated { try existing(policy.find(url) { try store.remove($0, isDryRun: isDryRun) }, url) }
    }

    package func removeAll(olderThan: TimeSpan?, isDryRun: Bool) throws -> RemovalReport {
        try Self.translated {
            try store.removeAll(before: olderThan.map { Int64(time(nil)) -| $0.seconds }, isDryRun: isDryRun)
        }
    }

    private func existing<Value>(_ value: Value?, _ url: OriginURL) throws -> Value {
        guard let value else { throw ControlError.notCached(url.absolute) }
        return value
    }

    package func withFile(_ url: OriginURL, isWanted: @escaping () -> Bool, _ body: @escaping (LentFile) throws -> Void)
        throws
    {
        let holding = try Self.translated {
            try existing(policy.find(url) { key throws(StoreError) in try store.hold(key) }, url)
        }
        guard isWanted() else { throw CacheAccessError.interrupted }
        switch holding {
        case .complete(let hold):
            let lent = LentFile(
                path: "\(directory)/\(hold.path)", length: hold.length, codings: hold.codings, isHeld: { true })
            try withExtendedLifetime(hold) { try body(lent) }
        case .incomplete(let missing): throw CacheAccessError(ControlError.incomplete(url.absolute, missing: missing))
        }
    }

    package func importFile(
        _ url: OriginURL, file: ImportedFile, fields: HeaderFields, replaces: Bool, isWanted: @escaping (Int64) -> Bool
    ) throws -> ResourceReport {
        try Self.translated {
            let importer: Importer
            do {
                importer = try store.importer(
                    policy.resolve(url).key, length: file.length, fields: fields, replaces: replaces)
            } catch ImportError.exists {
                throw CacheAccessError.importExists(url)
            }
            do {
                try Self.copy(file, to: importer, isWanted)
                if file.hasChanged { throw CacheAccessError(file.changeError) }
                return try importer.finish()
            } catch {
                importer.cancel()
                throw error
            }
        }
    }

    private static func copy(_ file: ImportedFile, to importer: Importer, _ isWanted: (Int64) -> Bool) throws {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 4096)
        defer { buffer.deallocate() }
        var done: Int64 = 0
        while done < file.length {
            guard isWanted(done) else { throw CacheAccessError.interrupted }
            // no trap: at most the length was read
            let count = read(file.descriptor, buffer.baseAddress, Int(min(Int64(buffer.count), file.length - done)))
            if count < 0 && errno == EINTR { continue }
            guard count >= 0 else {
                throw CacheAccessError("cannot read \(file.path): \(String(errno: errno))")
            }
            guard count > 0 else { throw CacheAccessError(file.changeError) }
            try importer.write(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            done += Int64(count) // no trap: at most the size of the buffer
        }
    }

    package func verify(repairs: Bool, isWanted: @escaping (ScrubProgress?) -> Bool) throws -> ScrubReport {
        guard isWanted(nil) else { throw CacheAccessError.interrupted }
        var isInterrupted = false
        let report = try Self.translated {
            try store.scrub(repairs: repairs) { progress in
                isInterrupted = !isWanted(progress)
                return !isInterrupted
            }
        }
        if isInterrupted { throw CacheAccessError.interrupted }
        return report
    }
}

extension CacheAccessError {
    init(_ error: ControlError) {
        self.init(error.reason, error.advice)
        (missing, status, download) = (error.missing, error.status, error.download)
    }

    static func importExists(_ url: OriginURL) -> CacheAccessError {
        CacheAccessError("\(url.absolute) is cached, at least in part: use --replace to replace it")
    }
}
