/// What helps against an error, as a value: a program that embeds the cache changes a setting, and a command has a flag
/// for it.
package enum Advice: Sendable, Equatable {
    /// Let a private host be fetched from.
    case allow(host: String)
    /// Keep the cache elsewhere.
    case otherDirectory
    /// End the process that has the directory, or keep the cache elsewhere.
    case stopOwner
    /// Run the later version that has made the cache, or keep it elsewhere.
    case laterVersion
    /// Listen on another port, as another process has this one.
    case otherPort
    /// Cancel the download that is in the way.
    case cancel(download: Int64)

    /// In whose words advice is given.
    package enum Words: Sendable {
        case settings, flags
    }

    /// The end of a sentence that says what is wrong.
    package func text(in words: Words) -> String {
        let elsewhere = words == .flags ? "choose another --cache-dir" : "choose another cache directory"
        return switch self {
        case .allow(let host): words == .flags ? "use --allow \(host)" : "add \(host) to allow"
        case .otherDirectory: elsewhere
        case .stopOwner: "stop it or \(elsewhere)"
        case .laterVersion: "use that version, or \(elsewhere)"
        case .otherPort: "another process has this port, choose another" + (words == .flags ? " with --listen" : "")
        case .cancel(let id): "cancel it first" + (words == .flags ? ": reelcache downloads cancel \(id)" : "")
        }
    }
}

/// An error that says what helps as a value, for whoever tells it to choose the words.
package protocol AdvisedError: Error, CustomStringConvertible {
    /// What is wrong.
    var reason: String { get }
    /// What helps, where the reason does not say so already.
    var advice: Advice? { get }
}

extension AdvisedError {
    /// One line: what is wrong, and what helps.
    package func text(in words: Advice.Words) -> String { reason + (advice.map { "; \($0.text(in: words))" } ?? "") }

    package var description: String { text(in: .settings) }
}
