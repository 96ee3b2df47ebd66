import CachePolicy
import ControlAPI
import DiskCache
import Downloads
import EventIO
import Foundation
import HTTPTransport

/// A configuration that is invalid, a cache that cannot be opened, or a proxy that cannot start. The description is
/// one line that tells what to do.
///
/// ```swift
/// do { try await cache.startProxy() } catch ProxyError.portInUse(let why) { print(why) }
/// ```
public enum ProxyError: Error, Sendable, Equatable {
    /// A setting, a rule or a mount is invalid.
    case invalidSetting(Explanation)
    /// Not an http or https URL that can be fetched.
    case unsupportedURL(Explanation)
    /// The proxy does not serve the URL, because it serves mounts only.
    case notServed(Explanation)
    /// Another process uses the port.
    case portInUse(Explanation)
    /// The proxy cannot listen there, for another reason.
    case cannotListen(Explanation)
    /// Another process has the cache directory open.
    case cacheInUse(Explanation)
    /// The cache directory, or its contents, cannot be used: it is not a directory, others can read the token, or a
    /// later version has written it.
    case unusableCache(Explanation)
    /// The disk fails, or data on it is damaged.
    case disk(Explanation)
    /// This process may not have as many files open as it needs.
    case tooFewFiles(Explanation)
    /// The contacted proxy does not answer, or not as it should.
    case noAnswer(Explanation)

    /// The reason, and the remedy.
    public struct Explanation: Sendable, Equatable, CustomStringConvertible, ExpressibleByStringInterpolation {
        package let reason: String
        package let advice: Advice?

        /// One line.
        public var description: String { reason + (advice.map { "; \($0.text(in: .settings))" } ?? "") }

        /// For tests of programs.
        public init(stringLiteral text: String) { self.init(text) }

        init(_ reason: String, _ advice: Advice? = nil) { (self.reason, self.advice) = (reason, advice) }

        init(_ error: some AdvisedError) { self.init(error.reason, error.advice) }
    }

    /// The reason, and the remedy.
    public var explanation: Explanation {
        switch self {
        case .invalidSetting(let why), .unsupportedURL(let why), .notServed(let why), .portInUse(let why),
            .cannotListen(let why), .cacheInUse(let why), .unusableCache(let why), .disk(let why),
            .tooFewFiles(let why), .noAnswer(let why):
            why
        }
    }
}

extension ProxyError: AdvisedError, LocalizedError {
    package var reason: String { explanation.reason }
    package var advice: Advice? { explanation.advice }

    /// The reason and the remedy, in one line.
    public var description: String { explanation.description }

    /// The same, for `localizedDescription`.
    public var errorDescription: String? { description }
}

extension ProxyError {
    /// The one place where errors of other modules are mapped to this type.
    init(_ error: any Error) {
        switch error {
        case let error as ProxyError: self = error
        case let error as StoreError: self.init(error)
        case let error as DownloadError:
            self = error.advice == .laterVersion ? .unusableCache(Explanation(error)) : .disk(Explanation(error))
        case let error as ListenError:
            self =
                error.isPortTaken
                ? .portInUse(Explanation(error.description, .otherPort)) : .cannotListen("\(error.description)")
        case let error as TokenError: self = .unusableCache("\(error.description)")
        case let error as EventLoopError: self = .tooFewFiles("\(error.description)")
        case let error as any AdvisedError: self = .invalidSetting(Explanation(error.reason, error.advice))
        default: self = .invalidSetting("\(error)")
        }
    }

    init(_ error: StoreError) {
        switch error {
        case .locked: self = .cacheInUse(Explanation(error))
        case .setting: self = .invalidSetting(Explanation(error))
        case .directory: self = .unusableCache(Explanation(error))
        case .system, .index, .damagedIndex, .damagedRow, .closing: self = .disk(Explanation(error))
        }
    }
}
