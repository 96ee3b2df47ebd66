import CachePolicy
import HTTPModel
import HTTPTransport

extension ProxyLoop {
    /// Adds the fields that the form of the target requires, besides the origin's other fields.
    /// - Parameters:
    ///   - site: the field lines that make statements about the origin as a site. Through a mount they are sent
    ///     unchanged: a mounted origin stands under the proxy's own name, and its pages work there as they do at
    ///     home.
    ///   - content: what a browser can do with the content.
    ///   - isPublic: whether the media was fetched from public addresses.
    func addFormFields(
        _ site: [UInt8], _ content: ContentSafety, isPublic: Bool, for request: MediaRequest,
        to response: inout Response
    ) {
        let route = request.route
        switch route.form {
        case .path:
            let pages = CrossOrigin(
                request.reading.requester, isPublic: isPublic && route.isOpen, isMedia: content.isMedia,
                policy: addresses.value)
            if let usual = Self.usualFields(content, pages) { return response.fields(rendered: usual) }
            response.fields(SiteFields.inPathForm(content, readableBy: pages))
        case .absolute:
            response.fields(rendered: site)
            // RFC 9110 §7.6.3: a proxy adds Via in both directions, a gateway need not.
            response.field("Via", via.element)
            if isPublic, route.isOpen, request.head.value(of: "Via") != nil {
                response.field(SourceField.name, SourceField.isPublic)
            }
        case .mount:
            response.fields(rendered: site)
            if !route.isOneSite, !content.isInert { response.field("Content-Security-Policy", SiteFields.belowMount) }
        }
    }

    /// The fields that name no page, rendered once; nil for others.
    private static func usualFields(_ content: ContentSafety, _ pages: CrossOrigin) -> [UInt8]? {
        switch pages {
        case .everyone: content.isInert ? inert.everyone : confined.everyone
        case .nobody(isPrivate: false): content.isInert ? inert.nobody : confined.nobody
        case .nobody(isPrivate: true): content.isInert ? inert.nobodyOfPrivate : confined.nobodyOfPrivate
        case .only: nil
        }
    }

    private static let inert = UsualFields(
        of: ContentSafety(HeaderFields([.init(name: "Content-Type", value: "video/mp4")])))
    private static let confined = UsualFields(of: ContentSafety(HeaderFields()))

    private struct UsualFields {
        let everyone: [UInt8]
        let nobody: [UInt8]
        /// Private content must not even be embedded elsewhere.
        let nobodyOfPrivate: [UInt8]

        init(of content: ContentSafety) {
            let rendered = { (pages: CrossOrigin) in
                var response = Response(200, length: nil)
                response.fields(SiteFields.inPathForm(content, readableBy: pages))
                return response.fieldBytes
            }
            (everyone, nobody, nobodyOfPrivate) = (
                rendered(.everyone), rendered(.nobody(isPrivate: false)), rendered(.nobody(isPrivate: true))
            )
        }
    }
}

extension Response {
    mutating func fields(_ fields: HeaderFields) {
        for line in fields.lines { field(line.name, line.value) }
    }
}

extension HeaderFields {
    /// Removes the field lines that make statements about the origin as a site.
    /// - Returns: these lines as they are sent.
    mutating func takeSiteFields() -> [UInt8] {
        let isTaken = { (line: Line) in SiteFields.isOfOrigin(line.name) }
        defer { lines.removeAll(where: isTaken) }
        return lines.filter(isTaken).flatMap { Array("\($0.name): \($0.value)\r\n".utf8) }
    }
}
