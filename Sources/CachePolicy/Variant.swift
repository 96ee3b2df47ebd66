import HTTPModel

/// The request fields by which an origin selected one of its answers, with their values in the request (RFC 9111
/// §4.1).
///
/// The first answer of a resource is stored under the resource's own key, each further variant under a key of its
/// own (`variantKey`).
package struct Variant: Sendable, Equatable {
    package struct Field: Sendable, Equatable {
        /// In lower case.
        package let name: String
        /// In the form in which values are compared; nil if the request lacked the field. Credentials are replaced
        /// by a fingerprint.
        package let value: String?

        package init(name: String, value: String?) {
            self.name = name
            self.value = value
        }

        /// A field as it was stored, perhaps by an earlier version, which compared values in another form.
        package init(stored name: String, value: String?) {
            // A fingerprint begins with a space.
            let isText = value.map { !$0.hasPrefix(" ") } ?? false
            self.init(name: name, value: isText ? value.map { Variant.normalized($0, of: name) } : value)
        }

        /// Compares bytes, because `String ==` treats different bytes as equal if they are canonically equivalent
        /// in Unicode.
        package static func == (a: Field, b: Field) -> Bool {
            a.name.utf8.elementsEqual(b.name.utf8) && a.value.map { Array($0.utf8) } == b.value.map { Array($0.utf8) }
        }
    }

    /// Sorted by name.
    package let fields: [Field]

    package init(_ fields: [Field] = []) { self.fields = fields.sorted { $0.name < $1.name } }

    /// The fields that a response names in `Vary`, in lower case; nil if it is `*`, so that no request matches, or
    /// names too many.
    static func names(in response: HeaderFields) -> Set<String>? {
        let lists = response.all("Vary")
        if lists.isEmpty { return [] }
        let names = lists.flatMap { $0.split(separator: ",") }.map { ASCII.lowercased(ASCII.trimmed($0)) }
        guard !names.contains("*") else { return nil }
        let set = Set(names.filter { !$0.isEmpty })
        return set.count > mostNames ? nil : set
    }

    private static let mostNames = 64

    /// The variant of a response to a request.
    /// - Parameters:
    ///   - request: the fields as they were sent to the origin. Fields that the proxy sets itself are the same in
    ///     all requests and select nothing.
    ///   - terms: how this cache reads the response's directives.
    ///   - fingerprint: computes the replacement of a credential's value, which is not stored.
    package init(
        response: HeaderFields, request: HeaderFields, _ terms: CacheTerms = .private, fingerprint: (String) -> String
    ) {
        var names = Self.names(in: response) ?? []
        if !names.isEmpty { names.subtract(Self.own) }
        // Stricter than RFC 9111, which lets a private cache serve the response to anyone, and a shared one whatever
        // cookies opened: a response to one user's credentials is not for another user.
        let sent = Self.credentials.filter { request[$0] != nil }
        if !sent.isEmpty {
            let directives = ResponseDirectives(response, terms)
            let shared = directives.sharesWhatAuthorizationOpened ? [Self.authorization] : []
            if !directives.isForEveryone { names.formUnion(sent.subtracting(shared)) }
        }
        self.init(names.map { Field(name: $0, value: Self.value(of: $0, in: request, fingerprint)) })
    }

    /// The variant of a response that is not media, with the same parameters. A client that authenticates does not get
    /// what one without credentials got, such as a demand for them.
    package init(
        ofShort response: HeaderFields, status: Int, request: HeaderFields, _ terms: CacheTerms = .private,
        fingerprint: (String) -> String
    ) {
        let variant = Variant(response: response, request: request, terms, fingerprint: fingerprint)
        guard !ResponseDirectives(response, terms).isForEveryone || [401, 403, 407].contains(status) else {
            self = variant
            return
        }
        let others = Self.credentials.filter { name in !variant.fields.contains { $0.name == name } }
        self.init(
            variant.fields + others.map { Field(name: $0, value: Self.value(of: $0, in: request, fingerprint)) })
    }

    /// Fields that the proxy sets itself, and fields that it never forwards.
    private static let own: Set<String> = [
        "accept-encoding", "host", "range", "if-range", "connection", "content-length",
    ]

    private static func value(of name: String, in request: HeaderFields, _ fingerprint: (String) -> String) -> String? {
        guard let value = request.combined(name) else { return nil }
        // What clients really send is shorter, and to sort a list costs far more than to read it.
        guard value.utf8.count <= longestNormalized else { return " " + fingerprint(value) }
        let normalized = normalized(value, of: name)
        guard credentials.contains(name) || normalized.utf8.count > longestValue else { return normalized }
        // No value begins with a space, so no value can equal the fingerprint of another.
        return " " + fingerprint(normalized)
    }

    private static let credentials = Set(HeaderFields.credentials.map { ASCII.lowercased($0) })
    private static let authorization = "authorization"
    private static let (longestValue, longestNormalized) = (256, 1 << 10)

    /// Whether it differs from another only by the client's name. Origins that select by that send the same media to
    /// each: servers name it by habit, for pages that they compress.
    package func differsByClientAlone(from other: Variant) -> Bool {
        Self.agree(self, other) { $0 == "user-agent" }
    }

    /// Whether it differs from another, but by no credentials.
    package func hasSameCredentials(as other: Variant) -> Bool {
        Self.agree(self, other) { !Self.credentials.contains($0) }
    }

    private static func agree(_ a: Variant, _ b: Variant, but isIgnored: (String) -> Bool) -> Bool {
        a.fields.filter { !isIgnored($0.name) } == b.fields.filter { !isIgnored($0.name) }
    }

    /// Whether credentials in `Authorization` selected it.
    var hasAuthorization: Bool { fields.contains { $0.name == Self.authorization && $0.value != nil } }

    /// §4.1: drops what has no meaning in the field's syntax: in lists, white space around commas and empty
    /// elements. In other fields, and inside quotes, it might matter.
    private static func normalized(_ value: String, of name: String) -> String {
        if name == "accept-language", let languages = LanguageRanges(value) { return languages.normalized }
        guard name.hasPrefix("accept"), !value.utf8.contains(ASCII.quote) else { return String(ASCII.trimmed(value)) }
        let elements = value.utf8.split(separator: ASCII.comma).map { ASCII.trimmed($0) }
        return elements.filter { !$0.isEmpty }.map { String(Substring($0)) }.joined(separator: ",")
    }

    /// The variant with the same fields, as another request has them.
    package func of(_ request: HeaderFields, fingerprint: (String) -> String) -> Variant {
        Variant(fields.map { Field(name: $0.name, value: Self.value(of: $0.name, in: request, fingerprint)) })
    }

    /// The key of the answer that these fields selected, if another answer is stored under the resource's own key:
    /// that key, a space, which does not occur in URLs, and the fields. Each selection has a unique key: separators
    /// inside names and values are encoded, and a field that the request lacked has no "=".
    package func variantKey(of key: CacheKey) -> CacheKey {
        let text = fields.map { field in
            PercentEncoding.encodingReserved(field.name)
                + (field.value.map { "=" + PercentEncoding.encodingReserved($0) } ?? "")
        }.joined(separator: "&")
        return CacheKey(text: key.text + " " + text)
    }
}

extension CacheKey {
    /// Whether this is a key, or that of one of its variants.
    package func isOf(_ key: CacheKey) -> Bool { self == key || text.hasPrefix(key.text + " ") }

    /// The key of which this may be a variant's.
    package var withoutVariant: CacheKey {
        text.utf8.firstIndex(of: ASCII.space).map { CacheKey(text: String(text[..<$0])) } ?? self
    }
}
