import CachePolicy
import HTTPModel

/// Two views of one place: where an origin has it, and where a client finds it. References in a playlist are relative
/// to the one, and players resolve them against the other.
struct AddressScope: Sendable, Hashable {
    let origin: OriginURL
    let client: OriginURL
}

/// Decides what becomes of a reference, so that a client that resolves it against its own URL arrives at the proxy's
/// form of what is meant.
///
///     origin.resolving(reference) ──── form ───▶ client.resolving(replacement ?? reference)
struct AddressRewriter {
    let scope: AddressScope
    let form: ProxyForm
    private var directories = DirectoryMemo<Directory?>()

    /// What becomes of all references into one directory.
    private struct Directory {
        /// Of the proxy's form, in which all has the same name.
        let text: String
        /// A client arrives there by itself.
        let isRight: Bool
    }

    init(_ scope: AddressScope, form: ProxyForm) {
        self.scope = scope
        self.form = form
    }

    /// - Parameter reference: as `Reference.text` gives it.
    /// - Returns: what to write in its place, absolute; nil where it is right as it stands, or leads to what nobody
    ///   fetches over HTTP.
    mutating func replacement(for reference: String) -> String? {
        if let (directory, name) = directory(of: reference) { return directory.isRight ? nil : directory.text + name }
        guard let target = formed(reference), scope.client.resolving(reference) != target else { return nil }
        return target.absolute + Reference.fragment(of: reference)
    }

    /// The proxy's form of a reference; nil where it leads to what nobody fetches over HTTP.
    mutating func absolute(_ reference: String) -> String? {
        if let (directory, name) = directory(of: reference) { return directory.text + name }
        return formed(reference).map { $0.absolute + Reference.fragment(of: reference) }
    }

    private func formed(_ reference: String) -> OriginURL? { scope.origin.resolving(reference).map { form($0) } }

    /// Nil where a reference has to be looked at as a whole.
    private mutating func directory(of reference: String) -> (Directory, name: Substring)? {
        guard let (name, rest) = Reference.split(reference) else { return nil }
        let (scope, form) = (scope, form)
        return directories.value(for: name) { Self.directory($0, scope, form) }.map { ($0, rest) }
    }

    private static func directory(_ reference: String, _ scope: AddressScope, _ form: ProxyForm) -> Directory? {
        guard let formed = scope.origin.resolving(reference).map({ form($0) }) else { return nil }
        return Directory(text: formed.absolute, isRight: scope.client.resolving(reference) == formed)
    }
}

/// What is the same for all references into one directory. Most of a playlist's lead into a few.
struct DirectoryMemo<Value> {
    private var values: [String: Value] = [:]
    private static var most: Int { 64 }

    mutating func value(for directory: Substring, make: (String) -> Value) -> Value {
        // A relative one is its base's.
        let name = directory.isEmpty ? "./" : String(directory)
        if let known = values[name] { return known }
        let value = make(name)
        if values.count >= Self.most { values = [:] }
        values[name] = value
        return value
    }
}
