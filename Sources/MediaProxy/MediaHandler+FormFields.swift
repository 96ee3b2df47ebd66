import CachePolicy
import HTTPModel
import HTTPTransport

extension MediaHandler {
    /// Adds what the form of the target asks for beside the origin's other fields.
    /// - Parameters:
    ///   - site: the lines that speak for the origin as a site. Through a mount they go out as they are: who mounts an
    ///     origin has it stand
    ///     under the proxy's own name, and its pages work there as they do at home.
    ///   - content: what a browser can do with it.
    ///   - isPublic: whether the media came from public addresses.
    func addFormFields(
        _ site: [UInt8], _ content: ContentSafety, isPublic: Bool, _ route: Route, for request: RequestHead,
        to response: inout Response
    ) {
        switch route.form {
        case .path:
            let requester = Requester(request, policy.webOrigins)
            let pages = CrossOrigin(
                requester, isPublic: isPublic && route.isOpen, isMedia: content.isMedia, policy: addresses.value)
            if let usual = Self.usualFields(content, pages) { return response.fields(rendered: usual) }
            response.fields(SiteFields.inPathForm(content, readableBy: pages))
        case .absolute:
            response.fields(rendered: site)
            // RFC 9110 §7.6.3: a proxy says so in both directions, a gateway need not.
            response.field("Via", via.element)
        case .mount:
            response.fields(rendered: site)
            if !route.isOneSite, !content.isInert { response.field("Content-Security-Policy", SiteFields.belowMount) }
        }
    }

    /// Those that name no page, laid out once; nil for others.
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
        /// What is private is not even embedded elsewhere.
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
    /// Takes the lines out that speak for the origin as a site.
    /// - Returns: these lines as they go out.
    mutating func takeSiteFields() -> [UInt8] {
        let isTaken = { (line: Line) in SiteFields.isOfOrigin(line.name) }
        defer { lines.removeAll(where: isTaken) }
        return lines.filter(isTaken).flatMap { Array("\($0.name): \($0.value)\r\n".utf8) }
    }
}
