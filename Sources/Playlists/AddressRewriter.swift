import CachePolicy
import HTTPModel

/// Two views of one place: its URL at the origin, and the URL by which a client reaches it. References in a
/// playlist are relative to the former, but players resolve them against the latter.
struct AddressScope: Sendable, Hashable {
    let origin: OriginURL
    let client: OriginURL
}

/// Decides how a reference is rewritten, so that a client that resolves it against its own URL arrives at the
/// proxy's form of the target.
///
///     origin.resolving(reference) ──── form ───▶ client.resolving(replacement ?? reference)
struct AddressRewriter {
    let scope: AddressScope
    let form: ProxyForm
    private var directories = DirectoryMemo<Directory?>()

    /// The rewriting of all references into one directory.
    private struct Directory {
        /// The proxy's form of the directory; names below it are the same.
        let text: String
        /// Whether a client arrives there without a rewrite.
        let isRight: Bool
    }

    init(_ scope: AddressScope, form: ProxyForm) {
        self.scope = scope
        self.form = form
    }

    /// - Parameter reference: in the form of `Reference.text`.
    /// - Returns: the absolute replacement; nil if the reference is right as it stands, or its target is not
    ///   fetched over HTTP.
    mutating func replacement(for reference: String) -> String? {
        if let (directory, name) = directory(of: reference) { return directory.isRight ? nil : directory.text + name }
        guard let target = formed(reference), scope.client.resolving(reference) != target else { return nil }
        return target.absolute + Reference.fragment(of: reference)
    }

    /// The proxy's form of a reference; nil if its target is not fetched over HTTP.
    mutating func absolute(_ reference: String) -> String? {
        if let (directory, name) = directory(of: reference) { return directory.text + name }
        return formed(reference).map { $0.absolute + Reference.fragment(of: reference) }
    }

    private func formed(_ reference: String) -> OriginURL? { scope.origin.resolving(reference).map { form($0) } }

    /// Nil if a reference must be resolved as a whole.
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

/// Remembers what is the same for all references into one directory. Most references of a playlist lead into a few
/// directories.
struct DirectoryMemo<Value> {
    private var values: [String: Value] = [:]
    private static var most: Int { 64 }

    mutating func value(for directory: Substring, make: (String) -> Value) -> Value {
        // A relative directory is below the base.
        let name = directory.isEmpty ? "./" : String(directory)
        if let known = values[name] { return known }
        let value = make(name)
        if values.count >= Self.most { values = [:] }
        values[name] = value
        return value
    }
}
