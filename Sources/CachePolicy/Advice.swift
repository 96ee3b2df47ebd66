/// The remedy for an error, as a value: a program that embeds the cache changes a setting, a command has a flag for
/// it.
package enum Advice: Sendable, Equatable {
    /// Allow fetching from a private host.
    case allow(host: String)
    /// Keep the cache in another directory.
    case otherDirectory
    /// End the process that uses the directory, or keep the cache elsewhere.
    case stopOwner
    /// Run the later version that created the cache, or keep the cache elsewhere.
    case laterVersion
    /// Listen on another port, as another process uses this one.
    case otherPort
    /// Cancel the download that is in the way.
    case cancel(download: Int64)

    /// The terms in which advice is given.
    package enum Words: Sendable {
        case settings, flags
    }

    /// The end of a sentence that states what is wrong.
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

/// An error that carries its remedy as a value, so that the caller that reports it can choose the wording.
package protocol AdvisedError: Error, CustomStringConvertible {
    /// What is wrong.
    var reason: String { get }
    /// The remedy, unless the reason already states it.
    var advice: Advice? { get }
}

extension AdvisedError {
    /// One line: what is wrong, and the remedy.
    package func text(in words: Advice.Words) -> String { reason + (advice.map { "; \($0.text(in: words))" } ?? "") }

    package var description: String { text(in: .settings) }
}
