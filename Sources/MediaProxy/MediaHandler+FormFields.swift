import CachePolicy
import HTTPModel
import HTTPTransport

extension MediaHandler {
    /// Adds what the form of the target asks for beside the origin's other fields.
    /// - Parameters:
    ///   - accessControl: the origin's own `Access-Control-` lines.
    ///   - isPublic: whether the media came from public addresses.
    func addFormFields(_ accessControl: [UInt8], isPublic: Bool, _ form: RouteForm, for request: RequestHead, to response: inout Response) {
        switch form {
        case .path:
            guard !isPublic else { return response.fields(rendered: Self.readableByEveryone) }
            response.fields(CrossOrigin(origin: request.value(of: "Origin"), isPublic: isPublic, policy: addresses.value).fields)
        case .absolute:
            response.fields(rendered: accessControl)
            // RFC 9110 §7.6.3: a proxy says so in both directions, a gateway need not.
            response.field("Via", via.element)
        case .mount:
            response.fields(rendered: accessControl)
        }
    }

    private static let readableByEveryone: [UInt8] = {
        var response = Response(200, length: nil)
        response.fields(CrossOrigin.everyone.fields)
        return response.fieldBytes
    }()
}

extension Response {
    mutating func fields(_ fields: FieldLines) {
        for line in fields.lines { field(line.name, line.value) }
    }
}

extension FieldLines {
    /// Takes the `Access-Control-` lines out.
    /// - Returns: these lines as they go out.
    mutating func takeAccessControl() -> [UInt8] {
        let isTaken = { (line: Line) in ASCII.lowercased(line.name).hasPrefix("access-control-") }
        defer { lines.removeAll(where: isTaken) }
        return lines.filter(isTaken).flatMap { Array("\($0.name): \($0.value)\r\n".utf8) }
    }
}
