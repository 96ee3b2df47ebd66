import HTTPModel

/// The request fields by which an origin chose among its answers, as they were in the request (RFC 9111 §4.1).
///
/// A resource with several such answers keeps the first under its own key, and each further one under a key of its own (`variantKey`).
package struct SelectingFields: Sendable, Equatable {
    package struct Field: Sendable, Equatable {
        /// In lower case.
        package let name: String
        /// As it compares; nil where the request had none. Credentials stand here as a fingerprint.
        package let value: String?

        package init(name: String, value: String?) {
            self.name = name
            self.value = value
        }
    }

    /// In the order of their names.
    package let fields: [Field]

    package init(_ fields: [Field] = []) { self.fields = fields.sorted { $0.name < $1.name } }

    package var isEmpty: Bool { fields.isEmpty }

    /// The fields that a response names in `Vary`, in lower case; nil where it is `*`, so that no request matches.
    static func names(in response: FieldLines) -> Set<String>? {
        let names = response.all("Vary").flatMap { $0.split(separator: ",") }.map { ASCII.lowercased(Substring(ASCII.trimmed($0.utf8))) }
        return names.contains("*") ? nil : Set(names.filter { !$0.isEmpty })
    }

    /// Those of a response to a request.
    /// - Parameters:
    ///   - request: the fields as they went to the origin: what this proxy says itself, the same in all requests, selects nothing.
    ///   - fingerprint: stands for a credential's value, which is not kept.
    package init(response: FieldLines, request: FieldLines, fingerprint: (String) -> String) {
        var names = Self.names(in: response) ?? []
        for name in Self.own { names.remove(name) }
        // Not of RFC 9111, which lets a private cache give it to anyone: what one user's credentials opened is not for another's.
        if request["Authorization"] != nil, !CacheControl(parsing: response.combined("Cache-Control")).isPublic { names.insert("authorization") }
        self.init(names.map { Field(name: $0, value: Self.value(of: $0, in: request, fingerprint)) })
    }

    /// The proxy's own, and those that never go to an origin from a client.
    private static let own: Set<String> = ["accept-encoding", "host", "range", "if-range", "connection", "content-length"]

    private static func value(of name: String, in request: FieldLines, _ fingerprint: (String) -> String) -> String? {
        guard let value = request.combined(name) else { return nil }
        // §4.1: white space and the division into lines do not matter.
        let normalized = value.split(separator: ",").map { String(Substring(ASCII.trimmed($0.utf8))) }.joined(separator: ",")
        return ["authorization", "cookie", "proxy-authorization"].contains(name) || normalized.utf8.count > 256 ? fingerprint(normalized) : normalized
    }

    /// The same fields, as another request has them.
    package func of(_ request: FieldLines, fingerprint: (String) -> String) -> SelectingFields {
        SelectingFields(fields.map { Field(name: $0.name, value: Self.value(of: $0.name, in: request, fingerprint)) })
    }

    /// The key of the answer that was chosen by these fields, where the resource's own key has another: a space, which no URL has, and the
    /// fields.
    package func variantKey(of key: CacheKey) -> CacheKey {
        let text = fields.map { field in
            field.name + (field.value.map { "=" + PercentEncoding.encodingReserved($0) } ?? "")
        }.joined(separator: "&")
        return CacheKey(text: key.text + " " + text)
    }
}
