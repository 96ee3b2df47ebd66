import CachePolicy
import ControlAPI
import HTTPModel

/// The parameters of a request. Each method throws the error that answers an invalid value.
struct ControlParameters {
    private let values: QueryParameters
    private let host: String?
    private let mounts: [Mount]

    /// - Parameters:
    ///   - host: the request's `Host`.
    ///   - known: the accepted names, besides `secrets`, which every path accepts: whether to show secrets in URLs.
    init(target: String, host: String?, mounts: [Mount], known: [EndpointTraits.Parameter]) throws(ControlError) {
        (self.host, self.mounts) = (host, mounts)
        let known = (known + [.secrets]).map(\.rawValue)
        do throws(QueryParameters.Malformed) { values = try QueryParameters(target: target) } catch {
            throw ControlError(400, error.reason)
        }
        if let unknown = values.names(except: known).first {
            let hint = known.contains("url") ? "; write an & in a URL as %26" : ""
            throw ControlError(
                400,
                "there is no parameter \(unknown.prefix(100)) here; the parameters are \(known.joined(separator: ", "))\(hint)"
            )
        }
    }

    /// Whether to show secrets in URLs.
    func showsSecrets() throws(ControlError) -> Bool { try flag(.secrets) }

    func has(_ name: EndpointTraits.Parameter) -> Bool { self[name] != nil }

    subscript(_ name: EndpointTraits.Parameter) -> String? { values[name.rawValue] }

    /// A media URL as its origin has it, or as players open it.
    /// - Returns: nil if the parameter is missing.
    func url() throws(ControlError) -> OriginURL? {
        guard let text = self[.url] else { return nil }
        do throws(OriginURLError) { return try OriginURL(url: text).origin(at: place) } catch {
            throw ControlError(400, "url: \(error.reason)")
        }
    }

    /// The same for one that came in a body.
    func origin(of url: OriginURL) throws(ControlError) -> OriginURL {
        do throws(OriginURLError) { return try url.origin(at: place) } catch {
            throw ControlError(422, "url: \(error.reason)")
        }
    }

    var place: ProxyPlace { ProxyPlace(url: host.map { "http://" + $0 }, mounts: mounts) }

    func requiredURL() throws(ControlError) -> OriginURL {
        guard let url = try url() else {
            throw ControlError(400, "the parameter url is missing: name a media URL, percent-encoded")
        }
        return url
    }

    /// A flag without a value means true, as in `?dry_run`.
    func flag(_ name: EndpointTraits.Parameter) throws(ControlError) -> Bool {
        switch self[name] {
        case nil, "false": return false
        case "true", "": return true
        case let value?: throw ControlError(400, "\(name.rawValue) is true or false, not \(value.prefix(100))")
        }
    }

    /// The numbers of downloads, separated by commas; nil if the parameter is missing.
    func ids() throws(ControlError) -> [Int64]? {
        guard let text = self[.id] else { return nil }
        return try text.split(separator: ",", omittingEmptySubsequences: false).map { part throws(ControlError) in
            guard let id = ASCII.decimal(part.utf8), id > 0 else {
                throw ControlError(
                    400,
                    "id is the number of a download, or several separated by commas, such as 3,7, not \(text.prefix(100))"
                )
            }
            return id
        }
    }

    func number(_ name: EndpointTraits.Parameter, in range: ClosedRange<Int>) throws(ControlError) -> Int? {
        guard let text = self[name] else { return nil }
        guard let number = ASCII.decimal(text.utf8).flatMap({ Int(exactly: $0) }), range.contains(number) else {
            throw ControlError(
                400,
                "\(name.rawValue) is a number from \(range.lowerBound) to \(range.upperBound), not \(text.prefix(100))")
        }
        return number
    }
}
