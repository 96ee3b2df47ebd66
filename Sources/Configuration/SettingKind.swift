import CachePolicy
import Foundation
import HTTPModel
import HTTPTransport
import Logging
import Reelcache

/// How values of one kind are read and written.
struct SettingKind<Value: Sendable & Equatable>: Sendable {
    /// Stands for a value in the manual.
    let placeholder: String
    let read: @Sendable (String, SettingOrigin) throws(InvalidValue) -> Value
    /// The value as it would be written; nil if there is nothing to write.
    let write: @Sendable (Value) -> String?
    let completion: SettingCompletion

    init(
        _ placeholder: String, completion: SettingCompletion = .nothing,
        read: @escaping @Sendable (String, SettingOrigin) throws(InvalidValue) -> Value,
        write: @escaping @Sendable (Value) -> String?
    ) {
        self.placeholder = placeholder
        self.completion = completion
        self.read = read
        self.write = write
    }
}

/// What a shell offers for the value of a flag.
package enum SettingCompletion: Sendable {
    case nothing, file, directory
    case words([String])
}

/// What is wrong with a value, and what to write instead.
struct InvalidValue: Error {
    let reason: String
}

extension SettingKind<Int64> {
    static func size(atLeast smallest: Int64) -> Self {
        SettingKind("size") { (text, _) throws(InvalidValue) in
            guard let size = ByteSize(text) else {
                throw InvalidValue(reason: "'\(text)' is not a size; write it like 20GB or 500MiB")
            }
            guard size.bytes >= smallest else {
                throw InvalidValue(reason: "'\(text)' is too small; write \(ByteSize.exactText(smallest)) or more")
            }
            return size.bytes
        } write: {
            ByteSize.exactText($0)
        }
    }
}

extension SettingKind<Int64> {
    /// Bits per second, as `prefetch --quality` takes them.
    static var bitRate: Self {
        SettingKind("bitrate") { (text, _) throws(InvalidValue) in
            guard case .bitsPerSecond(let rate)? = RenditionChoice.Quality(text) else {
                throw InvalidValue(reason: "'\(text)' is not a bit rate; write bits per second, such as 800k or 2.5M")
            }
            return rate
        } write: {
            String($0)
        }
    }
}

extension SettingKind<Int64?> {
    /// Bytes per second; nil is written `none`.
    static var rate: Self {
        let size = SettingKind<Int64>.size(atLeast: 1)
        return SettingKind("size|none") { (text, origin) throws(InvalidValue) in
            if text == "none" { return nil }
            guard ByteSize(text) != nil else {
                throw InvalidValue(reason: "'\(text)' is not a size; write it like 2MB or 500KiB, or none for no limit")
            }
            return try size.read(text, origin)
        } write: {
            $0.map(ByteSize.exactText) ?? "none"
        }
    }
}

extension SettingKind<Int> {
    static func number(in range: ClosedRange<Int>) -> Self {
        SettingKind("number") { (text, _) throws(InvalidValue) in
            let bounds = "from \(range.lowerBound) to \(range.upperBound)"
            guard let number = Int(text) else {
                throw InvalidValue(reason: "'\(text)' is not a whole number; write one \(bounds)")
            }
            guard range.contains(number) else {
                throw InvalidValue(reason: "\(number) is out of range; write a number \(bounds)")
            }
            return number
        } write: {
            String($0)
        }
    }
}

extension SettingKind<Bool> {
    static var bool: Self {
        SettingKind("true|false") { (text, _) throws(InvalidValue) in
            guard let value = Bool(text) else {
                throw InvalidValue(reason: "'\(text)' is neither true nor false; write one of them")
            }
            return value
        } write: {
            String($0)
        }
    }
}

extension SettingKind<Duration> {
    static func time(in range: ClosedRange<Duration>) -> Self {
        SettingKind("time") { (text, _) throws(InvalidValue) in
            guard let span = TimeSpan(text) else {
                throw InvalidValue(reason: "'\(text)' is not a length of time; write it like 5s or 2m")
            }
            guard range.contains(.seconds(span.seconds)) else {
                let bounds = [range.lowerBound, range.upperBound].map(Self.text)
                throw InvalidValue(reason: "'\(text)' is out of range; write a time from \(bounds[0]) to \(bounds[1])")
            }
            return .seconds(span.seconds)
        } write: {
            text($0)
        }
    }

    private static func text(_ time: Duration) -> String {
        let (seconds, attoseconds) = time.components
        return attoseconds == 0 ? TimeSpan(seconds: seconds).exactText : "\(time.inSeconds)s"
    }
}

extension SettingKind<FillMode> {
    static var fill: Self {
        SettingKind("policy", completion: .words(["read", "ahead", "end", "whole"])) { (text, _) throws(InvalidValue) in
            do throws(RuleError) { return try FillMode(text) } catch {
                throw InvalidValue(reason: error.reason)
            }
        } write: {
            $0.text
        }
    }
}

// MARK: Parts of rules

extension SettingKind<Duration> {
    static var ttl: Self {
        SettingKind("1d") { (text, _) throws(InvalidValue) in
            guard let span = TimeSpan(text) else {
                throw InvalidValue(reason: "'\(text)' is not a length of time; write it like 12h or 30d")
            }
            return .seconds(span.seconds)
        } write: {
            text($0)
        }
    }
}

extension SettingKind<String> {
    static var hostPattern: Self { checked("example.org") { text throws(RuleError) in _ = try HostPattern(text) } }
    static var pathPattern: Self { checked("/vod/*") { text throws(RuleError) in _ = try Glob(path: text) } }
    static var parameterPattern: Self {
        checked("name") { text throws(RuleError) in _ = try Glob(parameter: text) }
    }
    static var trusted: Self {
        checked("address|network") { text throws(RuleError) in _ = try TrustedAddresses([text]) }
    }
    static var requestRate: Self { checked("rate") { text throws(RuleError) in _ = try RequestRate(text) } }
    static var webOrigin: Self { checked("origin") { text throws(RuleError) in _ = try WebOrigins([text]) } }
    static var keyTemplate: Self {
        checked("https://cdn.example{path}") { text throws(RuleError) in _ = try KeyTemplate(text) }
    }
    static var refreshTemplate: Self {
        checked("https://api.example/play{path}") { text throws(RuleError) in _ = try RefreshTemplate(text) }
    }

    private static func checked(_ example: String, _ check: @escaping @Sendable (String) throws(RuleError) -> Void)
        -> Self
    {
        SettingKind(example) { (text, _) throws(InvalidValue) in
            do throws(RuleError) { try check(text) } catch { throw InvalidValue(reason: error.reason) }
            return text
        } write: {
            $0
        }
    }
}

extension SettingKind<String> {
    static var listenAddress: Self {
        SettingKind("host:port") { (text, _) throws(InvalidValue) in
            guard ListenAddress(text) != nil else {
                throw InvalidValue(reason: "cannot listen on '\(text)'; write HOST:PORT, such as 127.0.0.1:7335")
            }
            return text
        } write: {
            $0
        }
    }

    /// A path in the file must not depend on where the program is started: it is absolute, or begins with `~/`. The value
    /// is always absolute, so that reports and errors are unambiguous.
    static func path(_ completion: SettingCompletion) -> Self {
        SettingKind("path", completion: completion) { (text, origin) throws(InvalidValue) in
            guard !text.isEmpty else { throw InvalidValue(reason: "is empty; write a path") }
            if text.hasPrefix("/") { return text }
            guard origin.isFile else { return FileManager.default.currentDirectoryPath + "/" + text }
            if text.hasPrefix("~/") { return HomeDirectory.path() + text.dropFirst() }
            throw InvalidValue(reason: "'\(text)' is relative; write a path that begins with / or ~/")
        } write: {
            $0
        }
    }

    /// A path, or `-`.
    static var output: Self {
        let path = Self.path(.file)
        return SettingKind("file|-", completion: .file) { (text, origin) throws(InvalidValue) in
            text == ProxyConfiguration.standardOutput ? text : try path.read(text, origin)
        } write: {
            $0
        }
    }

    static var hostName: Self {
        SettingKind("host") { (text, _) throws(InvalidValue) in
            guard HostName.isOne(text) else {
                throw InvalidValue(
                    reason:
                        "'\(text)' is not a host name; write it without a port, like tv.example; addresses need no entry"
                )
            }
            return text
        } write: {
            $0
        }
    }

    static var privateOrigin: Self {
        SettingKind("host|network") { (text, _) throws(InvalidValue) in
            guard (try? AddressPolicy(allow: [text])) != nil else {
                throw InvalidValue(
                    reason:
                        "'\(text)' is not a host name, IP address or network; write it like nas.local, 192.168.1.5 or 192.168.1.0/24"
                )
            }
            return text
        } write: {
            $0
        }
    }
}

extension SettingKind<String> {
    static var parent: Self { checked("http://host:port") { text throws(RuleError) in _ = try ParentProxy(text) } }
    /// Its password is a secret: it is never written again.
    static var outgoingProxy: Self {
        SettingKind("scheme://host:port") { (text, _) throws(InvalidValue) in
            do throws(RuleError) { _ = try OutgoingProxy(text) } catch { throw InvalidValue(reason: error.reason) }
            return text
        } write: {
            try? OutgoingProxy($0).masked
        }
    }
    static var proxyException: Self {
        checked("host|network") { text throws(RuleError) in _ = try ProxyExceptions([text]) }
    }
}

extension SettingKind<AccessLogFormat> {
    static var accessLogFormat: Self {
        let names = AccessLogFormat.allCases.map(\.rawValue)
        return SettingKind(names.joined(separator: "|"), completion: .words(names)) { (text, _) throws(InvalidValue) in
            guard let format = AccessLogFormat(rawValue: text) else {
                throw InvalidValue(
                    reason: "'\(text)' is not a format of the access log; write \(names.joined(separator: " or "))")
            }
            return format
        } write: {
            $0.rawValue
        }
    }
}

extension SettingKind<Logger.Level> {
    static var logLevel: Self {
        SettingKind("level", completion: .words(Logger.Level.allCases.map(\.rawValue))) {
            (text, _) throws(InvalidValue) in
            guard let level = Logger.Level(rawValue: text) else {
                throw InvalidValue(
                    reason: "'\(text)' is not a level; write trace, debug, info, notice, warning, error or critical")
            }
            return level
        } write: {
            $0.rawValue
        }
    }
}
