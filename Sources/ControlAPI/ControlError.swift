import CachePolicy
import DiskCache
import Downloads
import Foundation
import HTTPModel
import HTTPTransport

/// What the control interface answers instead of what it was asked for: a status, and one line that says what to do.
package struct ControlError: AdvisedError {
    package let status: Int
    package let reason: String
    package private(set) var advice: Advice?
    /// A field that goes with the status (RFC 9110 §15.5.2, §15.5.6).
    var field: (name: StaticString, value: String)?
    /// What is not cached, where that is the reason.
    package var missing: [ByteSpan]?
    /// The download that is in the way, where that is the reason.
    package private(set) var download: Int64?

    package init(_ status: Int, _ reason: String, _ advice: Advice? = nil) {
        self.status = status
        self.reason = reason
        self.advice = advice
    }

    static func method(_ name: String, allowed: String) -> ControlError {
        var error = ControlError(405, "\(name.prefix(20)) is not supported here; use \(allowed)")
        error.field = ("Allow", allowed)
        return error
    }

    static func unauthorized(_ token: ControlToken) -> ControlError {
        var error = ControlError(
            401, "this needs the token that stands in \(token.path): send Authorization: Bearer TOKEN")
        error.field = ("WWW-Authenticate", "Bearer")
        return error
    }

    package static func notCached(_ url: String) -> ControlError {
        let hint =
            url.contains(URLMask.replacement) ? ": *** stands for a secret, which --secrets (secrets=true) shows" : ""
        return ControlError(404, "nothing of \(url) is cached\(hint)")
    }

    /// The one place where what the store throws becomes a status.
    package init(_ error: any Error) {
        switch error {
        case let error as ControlError: self = error
        case ImportError.exists:
            self.init(409, "something of that URL is cached already: remove it first, or have it replaced")
        case ImportError.noRoom:
            self.init(507, "the cache has no room for it: make it larger, or remove or unpin something")
        case ImportError.wrongLength(let expected, let got):
            self.init(400, "\(got) bytes came instead of the \(expected) that were announced")
        case ImportError.tooLong: self.init(413, "it is longer than a cache can handle")
        case ImportError.store(let error): self.init(error as any Error)
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

    /// Reads what a proxy has answered; nil where that is none of these errors.
    package init?(_ status: Int, body: [UInt8]) {
        if let body = try? ControlJSON.decode(Body.self, from: body) {
            self.init(status, body.error)
            (missing, download) = (body.missing, body.download)
        } else if status == 414 || status == 431 {
            // Refused before it was a request, so with a line of text.
            let line = String(decoding: body.prefix(300), as: UTF8.self).split(whereSeparator: \.isNewline).first ?? ""
            self.init(status, "the proxy takes no request that is so long: \(line)")
        } else {
            return nil
        }
    }

    /// Some of its bytes are not cached.
    package static func incomplete(_ url: String, missing: [ByteSpan]) -> ControlError {
        var error = ControlError(
            409, "\(url) is not complete: \(missing.reduce(0) { $0 +| $1.count }) of its bytes are not cached")
        error.missing = missing
        return error
    }

    /// It cannot be removed as long as it is being downloaded.
    package static func beingDownloaded(_ url: String, by id: Int64) -> ControlError {
        var error = ControlError(409, "\(url) is being downloaded (download \(id))", .cancel(download: id))
        error.download = id
        return error
    }

    /// As a line of JSON.
    var line: [UInt8] {
        (try? ControlJSON.line(Body(error: description, missing: missing, download: download)))
            ?? Array("{\"error\":\"the reason cannot be written as JSON\"}\n".utf8)
    }
}

extension Exchange {
    /// Answers with JSON.
    func respond(_ status: Int, json line: [UInt8], configure: (inout Response) -> Void = { _ in }) {
        var response = Response(status, length: Int64(line.count))
        response.describeJSON()
        configure(&response)
        respond(response, body: BytesSource(line))
    }

    func respond(_ error: ControlError) {
        respond(error.status, json: error.line) { response in
            if let field = error.field { response.field(field.name, field.value) }
        }
    }
}

extension Response {
    mutating func describeJSON() {
        field("Content-Type", "application/json")
        field("Cache-Control", "no-store")
    }
}
