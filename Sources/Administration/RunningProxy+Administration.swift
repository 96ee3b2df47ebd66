import CachePolicy
import ControlAPI
import DiskCache
import Foundation
import HTTPModel
import Reelcache
import Upstream

/// The operations of commands on a cache. All of them block and throw `CacheAccessError`.
extension RunningProxy {
    package func resources(_ query: ResourceQuery) throws -> ResourceListing {
        var parameters = [("sort", query.order.rawValue), ("offset", "\(query.offset)")]
        if let filter = query.filter { parameters.append(("filter", filter)) }
        if let after = query.after { parameters.append(("after", after)) }
        if let limit = query.limit { parameters.append(("limit", "\(limit)")) }
        return try ask(request("GET", "/api/v1/resources", parameters), for: ResourceListing.self)
    }

    /// All resources that a query means, in pages.
    package func allResources(_ query: ResourceQuery, limit: Int? = nil) throws -> ResourceListing {
        try ResourceListing.all(query, limit: limit, page: resources)
    }

    /// - Throws: also if nothing of it is cached; the other calls for one resource likewise.
    /// - Parameter listsSegments: whether to list each segment of a presentation.
    package func resource(_ url: OriginURL, listsSegments: Bool = false) throws -> ResourceDetail {
        let parameters = [("url", url.absolute)] + (listsSegments ? [("segments", "true")] : [])
        return try ask(request("GET", "/api/v1/resources", parameters), for: ResourceDetail.self)
    }

    package func setPinned(_ isPinned: Bool, _ url: OriginURL) throws -> ResourceDetail {
        try ask(
            request("PATCH", "/api/v1/resources", [("url", url.absolute)], body: ResourceChange(pinned: isPinned)),
            for: ResourceDetail.self)
    }

    /// Removes a resource, pinned or not.
    /// - Throws: also if a download of it has not ended, which would continue without the bytes it has received.
    package func remove(_ url: OriginURL, isDryRun: Bool) throws -> RemovalReport {
        do {
            return try ask(
                request("DELETE", "/api/v1/resources", [("url", url.absolute), ("dry_run", "\(isDryRun)")]),
                for: RemovalReport.self)
        } catch let error as CacheAccessError {
            throw error.download.map {
                CacheAccessError("\(url.absolute) is being downloaded (download \($0))", .cancel(download: $0))
            } ?? error
        }
    }

    /// Removes resources that are not pinned.
    /// - Parameter olderThan: removes only resources that were last read that long ago; nil for all.
    package func removeAll(olderThan: TimeSpan?, isDryRun: Bool) throws -> RemovalReport {
        let which = olderThan.map { ("older_than", "\($0.seconds)s") } ?? ("all", "true")
        return try ask(
            request("DELETE", "/api/v1/resources", [which, ("dry_run", "\(isDryRun)")]), for: RemovalReport.self)
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
        let path = "/api/v1/resources/file"
        var request = try request("GET", path, [("url", url.absolute)], needsToken: true)
        request.isWanted = isWanted
        let isOver = try receive(request) { bytes, isOpen in
            answer.append(contentsOf: bytes)
            guard answer.last == UInt8(ascii: "\n") else { return true }
            let file = try decode(HeldFile.self, from: answer, of: path)
            try body(LentFile(file, in: cacheDirectory, isHeld: isOpen))
            return false
        }
        if isOver { throw refusal(200, answer, path) }
    }

    /// Imports a resource.
    /// - Parameters:
    ///   - file: positioned at its beginning. If it changes during the import, nothing is imported.
    ///   - isWanted: called now and then with the number of bytes read; false aborts, and nothing is imported.
    package func importFile(
        _ url: OriginURL, file: ImportedFile, fields: HeaderFields, replaces: Bool, isWanted: @escaping (Int64) -> Bool
    ) throws -> ResourceReport {
        var request = try request("PUT", "/api/v1/resources", [("url", url.absolute), ("replace", "\(replaces)")])
        for line in fields.lines { request.fields.append(line.name, line.value) }
        request.content = .file(descriptor: file.descriptor, length: file.length)
        var isInterrupted = false
        request.isWanted = {
            isInterrupted = !isWanted(Int64(lseek(file.descriptor, 0, SEEK_CUR)))
            return !isInterrupted
        }
        request.mayComplete = { !file.hasChanged }
        do { return try ask(request, for: ResourceReport.self) } catch {
            if !isInterrupted && file.hasChanged { throw file.changeError }
            guard (error as? CacheAccessError)?.status == 409 else { throw error }
            throw CacheAccessError("\(url.absolute) is cached, at least in part: use --replace to replace it")
        }
    }

    func verify(repairs: Bool, isWanted: @escaping (ScrubProgress?) -> Bool) throws -> ScrubReport {
        var lines = JSONLines()
        var request = try request("POST", "/api/v1/verify", [("repair", "\(repairs)")])
        var last: ScrubProgress?
        request.isWanted = { isWanted(last) }
        _ = try receive(request) { bytes, _ in
            for line in lines.append(bytes) {
                if let progress = try? ControlJSON.decode(ScrubProgress.self, from: line) { last = progress }
            }
            return true
        }
        return try decode(ScrubReport.self, from: lines.last, of: "/api/v1/verify")
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
        let head = try perform(
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
                throw CacheAccessError(
                    "\(url.absolute) cannot be fetched, because the proxy serves mounts only: "
                        + "put its mounts and any_origin into the configuration file, which this command reads too")
            }
            throw CacheAccessError("\(url.absolute) cannot be fetched: \(head.status)\(line)")
        }
    }

    // MARK: Requests

    /// With the token, requests secrets in URLs, because a command may have to name a URL again.
    /// - Parameters:
    ///   - body: sent as JSON.
    ///   - needsToken: whether the request requires the token; nil to decide by its method. Requests that only read
    ///     may do without; then secrets in URLs are masked.
    func request(
        _ method: String, _ path: String, _ parameters: [(String, String)] = [], body: (any Encodable)? = nil,
        needsToken: Bool? = nil
    ) throws -> BlockingFetch {
        let token: String?
        if needsToken ?? (method != "GET") { token = try self.token() } else { token = try? self.token() }
        let tellsURLs = token != nil && path != "/api/v1/verify"
        let query = (parameters + (tellsURLs ? [("secrets", "true")] : [])).map {
            "\($0)=\(PercentEncoding.encodingReserved($1))"
        }.joined(separator: "&")
        var request = BlockingFetch(baseURL + path + (query.isEmpty ? "" : "?" + query))
        request.method = method
        // Work that waits for the disk may take long.
        request.timeout = nil
        if let token { request.fields.append("Authorization", "Bearer \(token)") }
        if let body {
            request.fields.append("Content-Type", "application/json")
            request.content = .bytes(try ControlJSON.line(body))
        }
        return request
    }

    /// The same request without the token; nil if it does more than read, or has no token already.
    private func withoutToken(_ request: BlockingFetch) -> BlockingFetch? {
        guard request.method == "GET", request.fields["Authorization"] != nil else { return nil }
        var request = request
        request.fields.remove("Authorization")
        request.url = request.url.replacing("&secrets=true", with: "").replacing("?secrets=true", with: "")
        return request
    }

    private func token() throws -> String {
        do throws(TokenError) { return try ControlToken(of: cacheDirectory).text } catch {
            throw CacheAccessError(
                error.isMendedAtStart ? "\(error); then restart the proxy (process \(processID))" : "\(error)")
        }
    }

    func ask<Value: Decodable>(_ request: BlockingFetch, for type: Value.Type) throws -> Value {
        try decode(type, from: body(of: request), of: path(of: request))
    }

    /// - Throws: `CacheAccessError` if it is something else: the proxy may be another version.
    func decode<Value: Decodable>(_ type: Value.Type, from bytes: [UInt8], of path: some StringProtocol) throws -> Value
    {
        guard let value = try? ControlJSON.decode(type, from: bytes) else { throw refusal(200, bytes, path) }
        return value
    }

    func body(of request: BlockingFetch) throws -> [UInt8] {
        var body: [UInt8] = []
        _ = try receive(request) { bytes, _ in
            body.append(contentsOf: bytes)
            return true
        }
        return body
    }

    /// Passes the body of a successful response to `take` as it arrives.
    /// - Parameters:
    ///   - failed: see `perform`.
    ///   - take: its second argument tells whether the proxy still has the connection open. Returns whether to continue.
    /// - Returns: whether the response has ended, rather than `take`.
    /// - Throws: the errors of `take`; `CacheAccessError` also if the proxy refuses.
    func receive(
        _ request: BlockingFetch, failed: (UpstreamError) -> String? = { _ in nil },
        _ take: (UnsafeRawBufferPointer, @escaping () -> Bool) throws -> Bool
    ) throws -> Bool {
        var (refused, result): ([UInt8], Result<Bool, any Error>) = ([], .success(true))
        let head = try withoutActuallyEscaping(take) { take in
            try perform(request, failed: failed) { head, bytes, isOpen in
                guard 200..<300 ~= head.status else {
                    refused.append(contentsOf: bytes)
                    return .more
                }
                result = Result { try take(bytes, isOpen) }
                if case .success(true) = result { return .more }
                return .enough
            }
        }
        // The token has changed since the proxy started; reading works without it.
        if head.status == 401, let plain = withoutToken(request) { return try receive(plain, failed: failed, take) }
        guard 200..<300 ~= head.status else { throw refusal(head.status, refused, path(of: request)) }
        return try result.get()
    }

    private func path(of request: BlockingFetch) -> Substring {
        request.url.dropFirst(baseURL.count).prefix { $0 != "?" }
    }

    /// - Parameter failed: returns a better error than that the proxy does not answer, if there is one.
    func perform(
        _ request: BlockingFetch, failed: (UpstreamError) -> String? = { _ in nil },
        _ receive: @escaping (BlockingFetch.Head, UnsafeRawBufferPointer, @escaping () -> Bool) -> BlockingFetch.Demand
    ) throws -> BlockingFetch.Head {
        do throws(UpstreamError) { return try request.perform(receive) } catch {
            if case .interrupted = error { throw CacheAccessError.interrupted }
            throw CacheAccessError(failed(error) ?? "the proxy at \(baseURL) does not answer: \(error)")
        }
    }

    package func refusal(_ status: Int, _ body: [UInt8], _ path: some StringProtocol) -> CacheAccessError {
        if status == 401 {
            let token = "the token in \(cacheDirectory)/control-token"
            return CacheAccessError(
                "the proxy at \(baseURL) does not accept \(token), which has changed since it started: restart the proxy (process \(processID))"
            )
        }
        if let error = ControlError(status, body: body) { return CacheAccessError(error) }
        return CacheAccessError(
            "the proxy at \(baseURL) answers \(status) to \(path) in an unexpected way: it may be another version"
        )
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
