/// A template for the address at which a fresh link to a resource is obtained, such as
/// `https://api.example/play{path}`: the value of a rule's `refresh`.
package struct RefreshTemplate: Sendable, Equatable {
    let template: URLTemplate

    package init(_ text: String) throws(RuleError) { template = try URLTemplate(text, as: "an address") }

    /// The address for a URL whose link has expired. `{query}` stands for its whole query.
    /// - Returns: nil if it would not be a URL, or the URL itself.
    func url(for url: OriginURL) -> OriginURL? {
        guard let address = template.url(for: url, query: String(url.query)), address != url else { return nil }
        return address
    }
}
