import Activity
import CachePolicy
import DiskCache
import Downloads
import Foundation
import HTTPModel

/// Why an operation on a cache was refused, or has failed: one line that tells what to do.
package struct ControlError: AdvisedError {
    /// The status of the control interface; nil for what a command finds by itself.
    package let status: Int?
    package let reason: String
    package private(set) var advice: Advice?
    /// A header field that the status requires (RFC 9110 §15.5.2, §15.5.6).
    package var field: (name: StaticString, value: String)?
    /// The ranges that are not cached, if that is the reason.
    package var missing: [ByteSpan]?
    /// The download that prevents the request, if that is the reason.
    package private(set) var download: Int64?
    /// Whether segments, keys or playlists of a stream are not cached, and that is the reason.
    package var lacksSegments = false

    package init(_ status: Int, _ reason: String, _ advice: Advice? = nil) {
        (self.status, self.reason, self.advice) = (status, reason, advice)
    }

    package init(_ reason: String, _ advice: Advice? = nil) {
        (status, self.reason, self.advice) = (nil, reason, advice)
    }

    package static let interrupted = ControlError("interrupted")

    /// Nothing of the resource is cached.
    package var isNotCached: Bool { status == 404 }

    package static func method(_ name: String, allowed: String) -> ControlError {
        var error = ControlError(405, "\(name.prefix(20)) is not supported here; use \(allowed)")
        error.field = ("Allow", allowed)
        return error
    }

    /// - Parameter place: where the token is.
    package static func unauthorized(tokenIn place: String) -> ControlError {
        var error = ControlError(401, "this needs the token in \(place): send Authorization: Bearer TOKEN")
        error.field = ("WWW-Authenticate", "Bearer")
        return error
    }

    package static func notCached(_ url: String) -> ControlError {
        let hint =
            url.contains(URLMask.replacement) ? ": *** stands for a secret, which --secrets (secrets=true) shows" : ""
        return ControlError(404, "nothing of \(url) is cached\(hint)")
    }

    /// The one place where the store's errors are mapped to a status.
    package init(_ error: any Error) {
        switch error {
        case let error as ControlError: self = error
        case ImportError.exists:
            self.init(409, "the URL is cached, at least in part: remove it first, or send replace=true")
        case ImportError.noRoom:
            self.init(507, "the cache has no room for the file: raise max_size, or remove or unpin something")
        case ImportError.wrongLength(let expected, let got):
            self.init(400, "received \(got) bytes instead of the \(expected) announced: send the whole file again")
        case ImportError.tooLong: self.init(413, "the file is longer than a cache can handle")
        case ImportError.store(let error): self.init(error as any Error)
        case StoreError.closing: self.init(503, "\(error)")
        case StoreError.setting(let reason): self.init(422, reason)
        case StoreError.system(_, _, ENOSPC): self.init(507, "\(error)")
        case StoreError.directory(let reason, let advice): self.init(422, reason, advice)
        case let error as StoreError: self.init(500, error.reason, error.advice)
        case let error as DownloadError: self.init(error.status, error.reason, error.advice)
        default: self.init(500, "\(error)")
        }
    }

    private struct Body: Codable {
        let error: String
        let missing: [ByteSpan]?
        let download: Int64?
    }

    /// Reads a proxy's response; nil if it is not one of these errors.
    package init?(_ status: Int, body: [UInt8]) {
        if let body = try? ControlJSON.decode(Body.self, from: body) {
            self.init(status, body.error)
            (missing, download) = (body.missing, body.download)
        } else if status == 414 || status == 431 {
            // Refused by the HTTP server, whose errors are a line of text.
            let line = String(decoding: body.prefix(300), as: UTF8.self).split(whereSeparator: \.isNewline).first ?? ""
            self.init(status, "the request is too long: \(line)")
        } else {
            return nil
        }
    }

    /// Refuses a resource some of whose bytes are not cached.
    package static func incomplete(_ url: String, missing: [ByteSpan]) -> ControlError {
        var error = ControlError(
            409, "\(url) is not complete: \(missing.reduce(0) { $0 +| $1.count }) of its bytes are not cached")
        error.missing = missing
        return error
    }

    /// Refuses to remove a resource that is being downloaded.
    package static func beingDownloaded(_ url: String, by id: Int64) -> ControlError {
        var error = ControlError(409, "\(url) is being downloaded (download \(id))", .cancel(download: id))
        error.download = id
        return error
    }

    /// The error as a line of JSON.
    package var line: [UInt8] {
        (try? ControlJSON.line(Body(error: description, missing: missing, download: download)))
            ?? Array("{\"error\":\"the reason cannot be written as JSON\"}\n".utf8)
    }
}

extension DownloadError {
    /// The corresponding status.
    var status: Int {
        switch kind {
        case .unknown, .notSubscribed: 404
        case .conflict: 409
        case .invalid: 422
        case .unreadable: 502
        case .closed: 503
        case .disk: description.contains("disk is full") ? 507 : 500
        }
    }
}
