import CachePolicy
import ControlAPI
import DiskCache
import Foundation
import HTTPModel
import Reelcache
import Upstream

/// The operations of commands on a cache. All of them block and throw `ControlError`.
extension RunningProxy {
    package func resources(_ query: ResourceQuery) throws -> ResourceListing {
        try client.call(
            \.resources,
            [
                .sort: query.order.rawValue, .offset: "\(query.offset)", .filter: query.filter,
                .category: query.category, .after: query.after, .limit: query.limit.map { "\($0)" },
            ])
    }

    /// - Throws: also if nothing of it is cached; the other calls for one resource likewise.
    /// - Parameter listsSegments: whether to list each segment of a presentation.
    package func resource(_ url: OriginURL, listsSegments: Bool = false) throws -> ResourceDetail {
        try client.call(\.resource, [.url: url.absolute, .segments: listsSegments ? "true" : nil])
    }

    package func setPinned(_ isPinned: Bool, _ url: OriginURL) throws -> ResourceDetail {
        try client.call(\.changeResource, [.url: url.absolute], body: ResourceChange(pinned: isPinned))
    }

    /// Removes a resource, pinned or not.
    /// - Throws: also if a download of it has not ended, which would continue without the bytes it has received.
    package func remove(_ url: OriginURL, isDryRun: Bool) throws -> RemovalReport {
        do {
            return try client.call(\.removeResources, [.url: url.absolute, .dryRun: "\(isDryRun)"])
        } catch let error as ControlError {
            throw error.download.map {
                ControlError("\(url.absolute) is being downloaded (download \($0))", .cancel(download: $0))
            } ?? error
        }
    }

    /// Which resources to remove, of all that are cached.
    package struct Removal: Sendable {
        /// Only those that were last read that long ago; nil for all.
        let olderThan: TimeSpan?
        /// Only those that were played.
        let isPlayed: Bool
        let includesPinned: Bool

        package init(olderThan: TimeSpan?, isPlayed: Bool, includesPinned: Bool) {
            (self.olderThan, self.isPlayed, self.includesPinned) = (olderThan, isPlayed, includesPinned)
        }

        /// Those that are cached now, for a person who is to confirm it; those read longest ago first.
        package func resources(in proxy: RunningProxy) throws -> [CachedResource] {
            let before = olderThan.map { Int64(time(nil)) -| $0.seconds }
            let held =
                includesPinned ? Set(try proxy.downloads().downloads.filter { !$0.state.hasEnded }.map(\.url)) : []
            return try ResourceListing.all(ResourceQuery(), page: proxy.resources).resources.reversed().filter {
                $0.lastAccess < before ?? .max && (!isPlayed || $0.played != nil)
                    && (!$0.isPinned || includesPinned && !held.contains($0.url))
            }
        }
    }

    /// Removes resources.
    package func removeAll(_ removal: Removal, isDryRun: Bool) throws -> RemovalReport {
        let isAll = removal.olderThan == nil && !removal.isPlayed
        return try client.call(
            \.removeResources,
            [
                .olderThan: removal.olderThan.map { "\($0.seconds)s" }, .all: isAll ? "true" : nil,
                .played: removal.isPlayed ? "true" : nil, .includePinned: removal.includesPinned ? "true" : nil,
                .dryRun: "\(isDryRun)",
            ])
    }

    /// Lends the file of a complete resource: while `body` runs, the file does not change and its `isHeld` is true. The
    /// proxy holds it for as long as the connection is open; `body` runs between the first line of the response and its
    /// end.
    /// - Parameter isWanted: called now and then before `body` runs; false aborts with an error.
    /// - Throws: the errors of `body`; an error with `missing` if the resource is not complete.
    package func withFile(_ url: OriginURL, isWanted: @escaping () -> Bool, _ body: @escaping (LentFile) throws -> Void)
        throws
    {
        var answer: [UInt8] = []
        var request = try client.request(\.file, [.url: url.absolute])
        request.fetch.isWanted = isWanted
        let isOver = try client.receive(request) { bytes, isOpen in
            answer.append(contentsOf: bytes)
            guard answer.last == UInt8(ascii: "\n") else { return true }
            let file = try client.decode(HeldFile.self, from: answer, of: request.path)
            try body(LentFile(file, in: cacheDirectory, isHeld: isOpen))
            return false
        }
        if isOver { throw client.refusal(200, answer, request.path) }
    }

    /// Imports a resource.
    /// - Parameters:
    ///   - file: positioned at its beginning. If it changes during the import, nothing is imported.
    ///   - isWanted: called now and then with the number of bytes read; false aborts, and nothing is imported.
    package func importFile(
        _ url: OriginURL, file: ImportedFile, fields: HeaderFields, replaces: Bool, isWanted: @escaping (Int64) -> Bool
    ) throws -> CachedResource {
        var request = try client.request(\.importResource, [.url: url.absolute, .replace: "\(replaces)"])
        for line in fields.lines { request.fetch.fields.append(line.name, line.value) }
        request.fetch.content = .file(descriptor: file.descriptor, length: file.length)
        var isInterrupted = false
        request.fetch.isWanted = {
            isInterrupted = !isWanted(Int64(lseek(file.descriptor, 0, SEEK_CUR)))
            return !isInterrupted
        }
        request.fetch.mayComplete = { !file.hasChanged }
        do { return try client.send(request) } catch {
            if !isInterrupted && file.hasChanged { throw file.changeError }
            guard (error as? ControlError)?.status == 409 else { throw error }
            throw ControlError("\(url.absolute) is cached, at least in part: use --replace to replace it")
        }
    }

    func verify(repairs: Bool, isWanted: @escaping (ScrubProgress?) -> Bool) throws -> CacheValidation {
        var lines = JSONLines()
        var request = try client.request(\.verify, [.repair: "\(repairs)"])
        var last: ScrubProgress?
        request.fetch.isWanted = { isWanted(last) }
        _ = try client.receive(request) { bytes, _ in
            for line in lines.append(bytes) {
                if let progress = try? ControlJSON.decode(ScrubProgress.self, from: line) { last = progress }
            }
            return true
        }
        return try client.decode(CacheValidation.self, from: lines.last, of: request.path)
    }

    /// The URL that a player requests from this proxy, to get a resource.
    /// - Parameter configuration: contains the mounts of the proxy, as far as they are known here. A proxy of this
    ///   process serves everything.
    package func request(for url: OriginURL, as configuration: ProxyConfiguration) throws -> String {
        isOwn ? baseURL + url.proxyPath : try configuration.url(for: url.absolute, through: baseURL)
    }

    /// Has the proxy fetch the missing bytes of a resource, by reading the resource to its end.
    /// - Parameters:
    ///   - configuration: contains the mounts of the proxy, as far as they are known here.
    ///   - isWanted: called with the number of bytes received, and the total if it is known; false aborts with an
    ///     error.
    package func fetch(
        _ url: OriginURL, as configuration: ProxyConfiguration,
        isWanted: @escaping (_ done: Int64, _ length: Int64?) -> Bool
    ) throws {
        var (done, length): (Int64, Int64?) = (0, nil)
        var refused: [UInt8] = []
        var request = BlockingFetch(try self.request(for: url, as: configuration))
        request.timeout = nil
        request.isWanted = { isWanted(done, length) }
        var hasBegun = false
        let head = try client.perform(
            request, failed: { hasBegun ? "\(url.absolute) cannot be fetched completely: \($0)" : nil }
        ) { head, bytes, _ in
            hasBegun = head.status == 200
            length = head.length
            if head.status == 200 {
                done +|= Int64(bytes.count)
            } else if refused.count < 1000 {
                refused.append(contentsOf: bytes)
            }
            return .more
        }
        guard head.status == 200 else {
            let line =
                String(decoding: refused, as: UTF8.self).split(whereSeparator: \.isNewline).first.map {
                    ": \($0.prefix(300))"
                } ?? ""
            if line.hasSuffix(ProxyPolicy.mountsAloneReason) {
                throw ControlError(
                    "\(url.absolute) cannot be fetched, because the proxy serves mounts only: "
                        + "put its mounts and any_origin into the configuration file, which this command reads too")
            }
            throw ControlError("\(url.absolute) cannot be fetched: \(head.status)\(line)")
        }
    }

    /// Sends requests for its endpoints.
    package var client: ControlClient {
        ControlClient(
            baseURL: baseURL, processID: processID, cacheDirectory: cacheDirectory, timeout: timeout,
            showsSecrets: showsSecrets)
    }
}

/// Splits JSON lines that arrive in pieces.
struct JSONLines {
    private var rest: [UInt8] = []
    /// The last complete line.
    private(set) var last: [UInt8] = []

    /// - Returns: the lines that are complete now.
    mutating func append(_ bytes: UnsafeRawBufferPointer) -> [[UInt8]] {
        var (lines, start): ([[UInt8]], Int) = ([], bytes.startIndex)
        while let end = bytes[start...].firstIndex(of: UInt8(ascii: "\n")) {
            lines.append(rest + bytes[start..<end])
            rest = []
            start = end + 1
        }
        rest.append(contentsOf: bytes[start...])
        if let line = lines.last { last = line }
        return lines
    }
}
