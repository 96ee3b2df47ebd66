import HTTPModel

/// What trusted proxies state about a request: who sent it to the first of them, and how.
///
/// Each proxy appends what it sees to `Forwarded` (RFC 7239) or to the `X-Forwarded-` fields, so that the last statement
/// is that of the proxy that is connected here. The statements are read from the last to the first for as long as they
/// name trusted proxies; whatever stands before was written by a client, who may have invented it.
package struct ForwardedRequest: Sendable, Equatable {
    /// The last address that is not trusted; nil if none is stated, or a proxy withholds it.
    package var client: IPEndpoint?
    package var scheme: OriginURL.Scheme?
    /// The authority that the client used, unchecked: a name with or without a port.
    package var host: String?
    package var port: UInt16?

    package init() {}

    /// - Parameter request: received from a trusted proxy.
    /// - Throws: a fault if a field is malformed, or two do not name the same client: one of them is a client's
    ///   invention.
    package init(_ request: RequestHead, trusted: TrustedAddresses) throws(RequestFault) {
        let elements = try Self.elements(request)
        let names = Self.list(request.combined("X-Forwarded-For"))
        let standard = Self.hop(elements.map(\.client), trusted)
        let usual = Self.hop(names, trusted)
        // A balancer may withhold the client, and a client must not fill that in.
        if !elements.isEmpty, !names.isEmpty, standard.client?.address != usual.client?.address { throw .contradiction }
        client = standard.client ?? usual.client
        // Counted from the last: a proxy that replaces a field leaves a single value.
        let element = elements.dropLast(standard.hops).last
        let value = { (list: [String]) in list.dropLast(min(usual.hops, max(0, list.count - 1))).last }
        let scheme = element?.scheme ?? value(Self.list(request.combined("X-Forwarded-Proto")))
        self.scheme = scheme.flatMap { OriginURL.Scheme(rawValue: ASCII.lowercased($0)) }
        host = element?.host ?? value(Self.list(request.combined("X-Forwarded-Host")))
        port = value(Self.list(request.combined("X-Forwarded-Port"))).flatMap(UInt16.init).flatMap { $0 > 0 ? $0 : nil }
    }

    /// Whether a request states that it was forwarded, whoever says so.
    package static func isClaimed(by request: RequestHead) -> Bool {
        request.value(of: "Forwarded") != nil || request.value(of: "X-Forwarded-For") != nil
    }

    private static func elements(_ request: RequestHead) throws(RequestFault) -> [ForwardedElement] {
        guard let field = request.combined("Forwarded") else { return [] }
        guard let elements = ForwardedElement.parse(field) else { throw .badForwarded }
        return elements
    }

    private static func list(_ field: String?) -> [String] {
        field?.split(separator: ",").map { String(ASCII.trimmed($0)) }.filter { !$0.isEmpty } ?? []
    }

    /// - Returns: the client, and how many proxies between it and here were passed over.
    private static func hop(_ nodes: [String?], _ trusted: TrustedAddresses) -> (client: IPEndpoint?, hops: Int) {
        for (hops, node) in nodes.reversed().enumerated() {
            guard let endpoint = node.flatMap({ IPEndpoint($0) }) else { return (nil, hops) }
            if !trusted.contains(endpoint.address) || hops == nodes.count - 1 { return (endpoint, hops) }
        }
        return (nil, 0)
    }
}

extension RequestFault {
    fileprivate static let badForwarded = RequestFault(
        status: 400,
        reason: "the Forwarded field is malformed: send for=ADDRESS;proto=SCHEME;host=NAME, or leave it out")
    fileprivate static let contradiction = RequestFault(
        status: 400,
        reason:
            "Forwarded and X-Forwarded-For do not name the same client: let the balancer remove the one that it does not write"
    )
}
