import ControlAPI
import DiskCache
import Foundation
import HTTPModel
import Upstream

/// Another Reelcache, from which a cache is filled.
package struct ArchiveNode {
    /// Limits a line of a list; those that are looked at together have twice as much at most.
    package static let mostLineBytes = 1 << 20

    /// Such as `http://cache-2:7335`.
    package let url: String
    private let token: String?

    /// - Parameter token: of the other cache; with the one for reading, resources whose URLs have secrets are left out.
    package init(_ url: String, token: String?) { (self.url, self.token) = (url, token) }

    /// Reads the list of what it has.
    /// - Parameters:
    ///   - generations: only these; nil for all.
    ///   - take: called with whole lines, each with its line feed. False ends the reading.
    /// - Returns: the list's last line; nil if the reading was ended before it.
    func list(
        _ generations: [String]?, isWanted: @escaping () -> Bool, _ take: @escaping ([UInt8]) throws -> Bool
    ) throws -> ArchiveListEnd? {
        var lines = ArchiveListLines(longest: Self.mostLineBytes), isRead = false
        try get("/list", generations, isWanted) { bytes in
            guard let groups = lines.take(bytes) else { throw unexpected }
            for group in groups where !isRead { isRead = try !take(group) }
            return !isRead
        }
        guard !isRead else { return nil }
        guard let (rest, end) = lines.finish() else { throw unexpected }
        if !rest.isEmpty { guard try take(rest) else { return nil } }
        return end
    }

    /// Reads an archive of some generations.
    /// - Parameter take: false ends the reading.
    func archive(
        _ generations: [String], isWanted: @escaping () -> Bool,
        _ take: @escaping (UnsafeRawBufferPointer) throws -> Bool
    ) throws { try get("", generations, isWanted, take) }

    private var unexpected: CacheAccessError {
        CacheAccessError("\(url) answers in an unexpected way: it may be another version")
    }

    private func get(
        _ path: String, _ generations: [String]?, _ isWanted: @escaping () -> Bool,
        _ take: @escaping (UnsafeRawBufferPointer) throws -> Bool
    ) throws {
        var request = BlockingFetch(
            url + "/api/v1/archive" + path + (generations.map { "?generations=" + $0.joined(separator: ",") } ?? ""))
        if let token { request.fields.append("Authorization", "Bearer \(token)") }
        // Less than the time that the own proxy waits for what it imports.
        (request.timeout, request.stallTimeout, request.isWanted) = (nil, 20, isWanted)
        var (refused, result): ([UInt8], Result<Bool, any Error>) = ([], .success(true))
        let head: BlockingFetch.Head
        do {
            head = try request.perform { head, bytes in
                guard head.status == 200 else {
                    refused.append(contentsOf: bytes.prefix(10_000))
                    return refused.count < 10_000 ? .more : .enough
                }
                result = Result { try take(bytes) }
                if case .success(true) = result { return .more }
                return .enough
            }
        } catch {
            if case .interrupted = error { throw CacheAccessError.interrupted }
            throw Broken(reason: "\(url) does not answer: \(error)")
        }
        guard head.status == 200 else { throw refusal(head.status, refused) }
        _ = try result.get()
    }

    private func refusal(_ status: Int, _ body: [UInt8]) -> any Error {
        if status == 401 {
            return CacheAccessError(
                "\(url) does not accept \(token == nil ? "a request without a token" : "the token"): name a file with its control-token-read, or its control-token: --token-file FILE"
            )
        }
        let reason = ControlError(status, body: body)?.reason
        if [502, 503, 504].contains(status) { return Broken(reason: "\(url) answers \(status)") }
        return CacheAccessError(
            reason.map { "\(url) answers \(status): \($0.printable(upTo: 300))" }
                ?? "\(url) answers \(status): it is no Reelcache, or another version")
    }

    /// An error that may pass by itself.
    struct Broken: Error {
        let reason: String
    }
}
