import CachePolicy
import HTTPModel
import HTTPTransport

extension MediaHandler {
    /// Adds what the form of the target asks for beside the origin's other fields.
    /// - Parameters:
    ///   - site: the lines that speak for the origin as a site. Through a mount they go out as they are: who mounts an origin has it stand
    ///     under the proxy's own name, and its pages work there as they do at home.
    ///   - isPublic: whether the media came from public addresses.
    func addFormFields(_ site: [UInt8], isPublic: Bool, _ route: Route, for request: RequestHead, to response: inout Response) {
        switch route.form {
        case .path:
            if isPublic && route.isOpen { return response.fields(rendered: Self.readableByEveryone) }
            // Players are no pages.
            guard let origin = request.value(of: "Origin") else { return response.fields(rendered: Self.readableByNobody) }
            let pages = CrossOrigin(origin: origin, isPublic: false, policy: addresses.value)
            response.fields(SiteFields.inPathForm(readableBy: pages))
        case .absolute:
            response.fields(rendered: site)
            // RFC 9110 §7.6.3: a proxy says so in both directions, a gateway need not.
            response.field("Via", via.element)
        case .mount:
            response.fields(rendered: site)
        }
    }

    private static let readableByEveryone = rendered(.everyone)
    private static let readableByNobody = rendered(.nobody)

    private static func rendered(_ pages: CrossOrigin) -> [UInt8] {
        var response = Response(200, length: nil)
        response.fields(SiteFields.inPathForm(readableBy: pages))
        return response.fieldBytes
    }
}

extension Response {
    mutating func fields(_ fields: FieldLines) {
        for line in fields.lines { field(line.name, line.value) }
    }
}

extension FieldLines {
    /// Takes the lines out that speak for the origin as a site.
    /// - Returns: these lines as they go out.
    mutating func takeSiteFields() -> [UInt8] {
        let isTaken = { (line: Line) in SiteFields.isOfOrigin(line.name) }
        defer { lines.removeAll(where: isTaken) }
        return lines.filter(isTaken).flatMap { Array("\($0.name): \($0.value)\r\n".utf8) }
    }
}
