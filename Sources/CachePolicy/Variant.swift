import HTTPModel

/// The request fields by which an origin chose among its answers, as they were in the request (RFC 9111 §4.1).
///
/// A resource with several such answers keeps the first under its own key, and each further one under a key of its own
/// (`variantKey`).
package struct Variant: Sendable, Equatable {
    package struct Field: Sendable, Equatable {
        /// In lower case.
        package let name: String
        /// As it compares; nil where the request had none. Credentials stand here as a fingerprint.
        package let value: String?

        package init(name: String, value: String?) {
            self.name = name
            self.value = value
        }

        /// Bytes, not `String ==`: that takes different bytes for equal where Unicode calls them canonically
        /// equivalent.
        package static func == (a: Field, b: Field) -> Bool {
            a.name.utf8.elementsEqual(b.name.utf8) && a.value.map { Array($0.utf8) } == b.value.map { Array($0.utf8) }
        }
    }

    /// In the order of their names.
    package let fields: [Field]

    package init(_ fields: [Field] = []) { self.fields = fields.sorted { $0.name < $1.name } }

    package var isEmpty: Bool { fields.isEmpty }

    /// The fields that a response names in `Vary`, in lower case; nil where it is `*`, so that no request matches, or
    /// names more than anybody chooses by.
    static func names(in response: HeaderFields) -> Set<String>? {
        let names = response.all("Vary").flatMap { $0.split(separator: ",") }.map {
            ASCII.lowercased(ASCII.trimmed($0))
        }
        guard !names.contains("*") else { return nil }
        let set = Set(names.filter { !$0.isEmpty })
        return set.count > mostNames ? nil : set
    }

    private static let mostNames = 64

    /// Those of a response to a request.
    /// - Parameters:
    ///   - request: the fields as they went to the origin: what this proxy says itself, the same in all requests,
    ///     selects nothing.
    ///   - fingerprint: stands for a credential's value, which is not kept.
    package init(response: HeaderFields, request: HeaderFields, fingerprint: (String) -> String) {
        var names = Self.names(in: response) ?? []
        for name in Self.own { names.remove(name) }
        // Not of RFC 9111, which lets a private cache give it to anyone: what one user's credentials opened is not for
        // another's.
        if !CacheControl(parsing: response.combined("Cache-Control")).isPublic {
            names.formUnion(Self.credentials.filter { request[$0] != nil })
        }
        self.init(names.map { Field(name: $0, value: Self.value(of: $0, in: request, fingerprint)) })
    }

    /// The proxy's own, and those that never go to an origin from a client.
    private static let own: Set<String> = [
        "accept-encoding", "host", "range", "if-range", "connection", "content-length",
    ]

    private static func value(of name: String, in request: HeaderFields, _ fingerprint: (String) -> String) -> String? {
        guard let value = request.combined(name) else { return nil }
        let normalized = normalized(value, isList: name.hasPrefix("accept"))
        guard credentials.contains(name) || normalized.utf8.count > longestValue else { return normalized }
        // No value begins with a space, so that none passes for the fingerprint of another.
        return " " + fingerprint(normalized)
    }

    private static let credentials = Set(HeaderFields.credentials.map { ASCII.lowercased($0) })
    private static let longestValue = 256

    /// §4.1: what the field's syntax says does not matter is left out: in lists the white space around commas, and
    /// empty elements. Of other fields, and inside of quotes, it might.
    private static func normalized(_ value: String, isList: Bool) -> String {
        guard isList, !value.utf8.contains(ASCII.quote) else { return String(ASCII.trimmed(value)) }
        let elements = value.utf8.split(separator: ASCII.comma).map { ASCII.trimmed($0) }
        return elements.filter { !$0.isEmpty }.map { String(Substring($0)) }.joined(separator: ",")
    }

    /// The same fields, as another request has them.
    package func of(_ request: HeaderFields, fingerprint: (String) -> String) -> Variant {
        Variant(fields.map { Field(name: $0.name, value: Self.value(of: $0.name, in: request, fingerprint)) })
    }

    /// The key of the answer that was chosen by these fields, where the resource's own key has another: a space, which
    /// no URL has, and the fields. No two selections have one key: what joins names and values is encoded inside of
    /// them, and a field that the request did not have has no "=".
    package func variantKey(of key: CacheKey) -> CacheKey {
        let text = fields.map { field in
            PercentEncoding.encodingReserved(field.name)
                + (field.value.map { "=" + PercentEncoding.encodingReserved($0) } ?? "")
        }.joined(separator: "&")
        return CacheKey(text: key.text + " " + text)
    }
}
