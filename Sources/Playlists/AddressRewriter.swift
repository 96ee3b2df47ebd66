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
    /// The form of the origin's directory: what is below it has the same name there. Nil where the proxy has none.
    private let directory: OriginURL?
    private let directoryText: String
    private let isAligned: Bool

    init(_ scope: AddressScope, form: ProxyForm) {
        self.scope = scope
        self.form = form
        let origin = scope.origin.resolving("./"), formed = origin.map { form($0) }
        directory = formed == origin ? nil : formed
        directoryText = directory?.absolute ?? ""
        isAligned = directory != nil && directory == scope.client.resolving("./")
    }

    /// - Parameter reference: as `Reference.text` gives it.
    /// - Returns: what to write in its place, absolute; nil where it is right as it stands, or leads to what nobody
    ///   fetches over HTTP.
    func replacement(for reference: String) -> String? {
        if directory != nil, Reference.isPlain(reference) { return isAligned ? nil : absolute(reference) }
        guard let target = scope.origin.resolving(reference).map({ form($0) }),
            scope.client.resolving(reference) != target
        else { return nil }
        return target.absolute + Reference.fragment(of: reference)
    }

    /// The proxy's form of a reference; nil where it leads to what nobody fetches over HTTP.
    func absolute(_ reference: String) -> String? {
        if directory != nil, Reference.isPlain(reference) { return directoryText + reference }
        return scope.origin.resolving(reference).map { form($0).absolute + Reference.fragment(of: reference) }
    }
}
