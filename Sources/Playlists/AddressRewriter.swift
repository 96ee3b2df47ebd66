import CachePolicy
import HTTPModel

/// Decides how a reference is rewritten, so that a client that resolves it against its own URL arrives at the
/// proxy's form of the target.
///
///     origin.resolving(reference) ──── form ───▶ client.resolving(replacement ?? reference)
struct AddressRewriter {
    /// Two views of one place: its URL at the origin, and the URL by which a client reaches it. References in a
    /// playlist are relative to the former, but players resolve them against the latter.
    struct Scope: Sendable, Hashable {
        let origin: OriginURL
        let client: OriginURL
    }

    let scope: Scope
    let form: ProxyForm
    private let budget: WorkBudget
    private var directories = DirectoryMemo<Directory?>()

    /// The rewriting of all references into one directory.
    private struct Directory {
        /// The proxy's form of the directory; names below it are the same.
        let text: String
        /// Whether a client arrives there without a rewrite.
        let isRight: Bool
    }

    init(_ scope: Scope, form: ProxyForm, within budget: WorkBudget) {
        (self.scope, self.form, self.budget) = (scope, form, budget)
    }

    /// - Parameter reference: in the form of `Reference.text`.
    /// - Returns: the absolute replacement; nil if the reference is right as it stands, or its target is not
    ///   fetched over HTTP.
    mutating func replacement(for reference: String) throws(PlaylistError) -> String? {
        if let (directory, name) = try directory(of: reference) {
            return directory.isRight ? nil : try made(directory.text, name)
        }
        guard let target = try formed(reference),
            try scope.client.resolving(reference, within: budget) != target
        else { return nil }
        return try made(target.absolute, Reference.fragment(of: reference))
    }

    /// The proxy's form of a reference; nil if its target is not fetched over HTTP.
    mutating func absolute(_ reference: String) throws(PlaylistError) -> String? {
        if let (directory, name) = try directory(of: reference) { return try made(directory.text, name) }
        guard let target = try formed(reference) else { return nil }
        return try made(target.absolute, Reference.fragment(of: reference))
    }

    private func made(_ text: String, _ rest: Substring) throws(PlaylistError) -> String {
        try budget.make(text.utf8.count &+ rest.utf8.count)
        return text + rest
    }

    private func formed(_ reference: String) throws(PlaylistError) -> OriginURL? {
        try scope.origin.resolving(reference, within: budget).map { form($0) }
    }

    /// Nil if a reference must be resolved as a whole.
    private mutating func directory(of reference: String) throws(PlaylistError) -> (Directory, name: Substring)? {
        try budget.take(reference.utf8.count)
        guard let (name, rest) = Reference.split(reference) else { return nil }
        let rewriter = self
        let directory = try directories.value(for: name) { name throws(PlaylistError) in
            try rewriter.makeDirectory(name)
        }
        return directory.map { ($0, rest) }
    }

    private func makeDirectory(_ reference: String) throws(PlaylistError) -> Directory? {
        guard let formed = try formed(reference) else { return nil }
        let isRight = try scope.client.resolving(reference, within: budget) == formed
        return Directory(text: formed.absolute, isRight: isRight)
    }
}

/// Remembers what is the same for all references into one directory. Most references of a playlist lead into a few
/// directories.
struct DirectoryMemo<Value> {
    private var values: [String: Value] = [:]
    private static var most: Int { 64 }

    mutating func value(for directory: Substring, make: (String) throws(PlaylistError) -> Value)
        throws(PlaylistError) -> Value
    {
        // A relative directory is below the base.
        let name = directory.isEmpty ? "./" : String(directory)
        if let known = values[name] { return known }
        let value = try make(name)
        if values.count >= Self.most { values = [:] }
        values[name] = value
        return value
    }
}
