import CachePolicy
import Foundation
import GRDB
import TestSupport

@testable import Downloads

/// A manager with a source, a cache and a clock that do what a test says.
///
/// Downloads are called by the last part of their URL. Whatever is asked here waits until the manager has done what it
/// was told.
final class Desk: Sendable {
    let directory: TemporaryDirectory
    let source: FakeSource
    let restorePoints: FakeRestorePoints
    let clock: ManualClock
    let log = LogBook()
    let manager: DownloadManager

    /// - Parameters:
    ///   - other: the desk of a manager that was dropped: this one has its directory, its cache and its clock, and a
    ///     source of its own.
    ///   - isStarted: whether it goes on with what it finds.
    ///   - hasSource: whether anything can be fetched.
    init(
        after other: Desk? = nil, maxActive: Int = 3, limitRate: Int64? = nil, schedule: [String] = [],
        caps: [String] = [], clock: ManualClock? = nil, hasSource: Bool = true, isStarted: Bool = true
    ) throws {
        directory = try other?.directory ?? TemporaryDirectory()
        (source, restorePoints, self.clock) = (
            FakeSource(), other?.restorePoints ?? FakeRestorePoints(), clock ?? other?.clock ?? ManualClock()
        )
        var settings = DownloadSettings()
        (settings.maxActive, settings.limitRate) = (maxActive, limitRate)
        (settings.schedule, settings.caps) = (try DownloadSchedule.parse(schedule), try DownloadCap.parse(caps))
        manager = try DownloadManager(
            directory: directory.path, source: hasSource ? source : nil, restorePoints: restorePoints,
            settings: settings, clock: self.clock, logger: log.logger)
        if isStarted { manager.perform { $0.start() } }
    }

    static func url(_ name: String) -> String { "https://example.org/" + name }

    static func order(_ name: String, _ priority: Download.Priority = .normal) -> DownloadOrder {
        DownloadOrder(url: origin(name), options: DownloadOptions { $0.priority = priority })
    }

    static func origin(_ name: String) -> OriginURL {
        do { return try OriginURL(url: url(name)) } catch { preconditionFailure("\(name) makes no URL: \(error)") }
    }

    // MARK: What people do

    /// - Returns: their numbers.
    @discardableResult
    func add(_ names: String..., priority: Download.Priority = .normal) throws -> [Int64] {
        try add(names.map { Self.order($0, priority) }).map(\.id)
    }

    /// Each from a host of its own.
    func addElsewhere(_ names: String...) throws {
        _ = try add(names.map { DownloadOrder(url: try OriginURL(url: "https://\($0).example/\($0)")) })
    }

    func add(_ orders: [DownloadOrder]) throws -> [Download] { try manager.perform { try $0.add(orders) } }

    @discardableResult
    func change(_ selection: DownloadSelection, _ change: DownloadChange) throws -> [Download] {
        try manager.perform { try $0.change(selection, change) }
    }

    @discardableResult
    func act(_ action: DownloadChange.Action, _ names: String...) throws -> [Download] {
        try change(.ids(names.map { self[$0].id }), DownloadChange(action: action))
    }

    func set(_ change: (inout DownloadSettings) -> Void) {
        var settings = manager.snapshots.summary.settings
        change(&settings)
        let changed = settings
        manager.perform { $0.set(changed) }
    }

    func history(limit: Int? = nil, category: String? = nil) -> [Download] {
        manager.perform { $0.history(limit: limit, category: category) }
    }

    // MARK: What happens

    /// So many seconds later, with one tick if somebody waits for that.
    func pass(_ seconds: Double) {
        catchUp()
        clock.advance(seconds)
        catchUp()
    }

    /// Waits until the manager has taken up all that transfers have told it, also those that ended as they were begun.
    func catchUp() {
        var ends: Int
        repeat {
            ends = source.ends.value
            manager.perform { _ in }
        } while source.ends.value != ends
    }

    /// The transfer of a download that was begun last.
    func transfer(_ name: String) throws -> FakeTransfer {
        catchUp()
        guard let found = source.transfers.last(where: { $0.name == name }) else {
            throw Unexpected("\(name) was never begun")
        }
        return found
    }

    // MARK: What there is

    /// Those that were begun and neither ended nor were stopped, in the order of their beginning.
    var running: [String] {
        catchUp()
        return source.running.map(\.name)
    }

    /// What was begun ever, in order.
    var begun: [String] {
        catchUp()
        return source.transfers.map(\.name)
    }

    var listing: [Download] {
        catchUp()
        return manager.snapshots.listing { _ in true }.downloads
    }

    /// Those that wait, in order.
    var waiting: [String] { listing.filter { $0.state == .waiting }.map { Self.name($0) } }

    static func name(_ report: Download) -> String { String(report.urlText.split(separator: "/").last ?? "") }

    /// The newest of that name.
    subscript(_ name: String) -> Download {
        let found = listing.filter { Self.name($0) == name }.max { $0.id < $1.id }
        precondition(found != nil, "there is no download \(name)")
        return found!
    }

    var summary: DownloadTotals {
        catchUp()
        return manager.snapshots.summary
    }

    // MARK: What is on the disk

    var path: String { directory.file("downloads.sqlite") }

    /// Through another connection than the manager's, which may not have made the file yet.
    func inDatabase<Value>(_ body: (Database) throws -> Value) throws -> Value {
        catchUp()
        if !FileManager.default.fileExists(atPath: path) {
            let database = try DownloadDatabase(directory: directory.path, logger: log.logger)
            try database.save([], DownloadUsage(), since: 0) { [] }
            try database.close()
        }
        var configuration = Configuration()
        configuration.busyMode = .timeout(5)
        return try DatabaseQueue(path: path, configuration: configuration).write(body)
    }

    /// A column of each download on the disk, by its name.
    func saved<Value: DatabaseValueConvertible>(_ column: String, as type: Value.Type = Value.self) throws -> [String:
        Value?]
    {
        try inDatabase { db in
            let rows = try Row.fetchAll(db, sql: "SELECT url, \(column) FROM download ORDER BY id")
            return Dictionary(
                rows.map { (String(($0[0] as String).dropFirst(Self.url("").count)), $0[1]) }, uniquingKeysWith: { $1 })
        }
    }
}

struct Unexpected: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}
