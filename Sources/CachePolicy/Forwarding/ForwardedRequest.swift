import HTTPModel

/// What trusted proxies state about a request: who sent it to the first of them, and how.
///
/// Each proxy appends what it sees to `Forwarded` (RFC 7239) or to the `X-Forwarded-` fields, so that the last statement
/// is that of the proxy that is connected here. The statements are read from the last to the first for as long as they
/// name trusted proxies; whatever stands before was written by a client, who may have invented it.
///
/// A proxy usually writes one of the two kinds, and may pass on the other as a client wrote it. Which one is forged cannot
/// be told: so where both are there, only what they agree on counts.
package struct ForwardedRequest: Sendable, Equatable {
    /// The last address that is not trusted; nil if none is stated, or a proxy withholds it.
    package var client: IPEndpoint?
    package var scheme: OriginURL.Scheme?
    /// The authority that the client used, unchecked: a name with or without a port.
    package var host: String?
    package var port: UInt16?

    package init() {}

    /// - Parameter request: received from a trusted proxy.
    /// - Throws: a fault if a field is malformed, or if both kinds are there and do not name the same client: one of them
    ///   is a client's invention.
    package init(_ request: RequestHead, trusted: TrustedAddresses) throws(RequestFault) {
        let standard = try Self.standard(request, trusted), usual = Self.usual(request, trusted)
        guard let standard, let usual else {
            self = standard ?? usual ?? ForwardedRequest()
            return
        }
        guard let client = standard.client, client.address == usual.client?.address else { throw .contradiction }
        self.client = client
        scheme = standard.scheme == usual.scheme ? usual.scheme : nil
        host = standard.host == usual.host ? usual.host : nil
    }

    /// What `Forwarded` states; nil if it is not there.
    private static func standard(
        _ request: RequestHead, _ trusted: TrustedAddresses
    ) throws(RequestFault) -> ForwardedRequest? {
        let elements = try elements(request)
        guard !elements.isEmpty else { return nil }
        let (client, hops) = hop(elements.map(\.client), trusted)
        let element = elements.dropLast(hops).last
        var stated = ForwardedRequest()
        stated.client = client
        stated.scheme = element?.scheme.flatMap(scheme)
        stated.host = element?.host
        return stated
    }

    /// What the `X-Forwarded-` fields state; nil if none of them is there.
    private static func usual(_ request: RequestHead, _ trusted: TrustedAddresses) -> ForwardedRequest? {
        let names = list(request, "X-Forwarded-For")
        let (schemes, hosts, ports) = (
            list(request, "X-Forwarded-Proto"), list(request, "X-Forwarded-Host"), list(request, "X-Forwarded-Port")
        )
        guard ![names, schemes, hosts, ports].allSatisfy(\.isEmpty) else { return nil }
        let (client, hops) = hop(names, trusted)
        // Counted from the last: a proxy that replaces a field leaves a single value.
        let value = { (list: [String]) in list.dropLast(min(hops, max(0, list.count - 1))).last }
        var stated = ForwardedRequest()
        stated.client = client
        stated.scheme = value(schemes).flatMap(scheme)
        stated.host = value(hosts)
        stated.port = value(ports).flatMap(UInt16.init).flatMap { $0 > 0 ? $0 : nil }
        return stated
    }

    private static func scheme(_ text: String) -> OriginURL.Scheme? {
        OriginURL.Scheme(rawValue: ASCII.lowercased(text))
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

    private static func list(_ request: RequestHead, _ name: StaticString) -> [String] {
        let field = request.combined(name)
        return field?.split(separator: ",").map { String(ASCII.trimmed($0)) }.filter { !$0.isEmpty } ?? []
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
            "Forwarded and X-Forwarded-For name different clients, or one names none: let the balancer remove the kind of field that it does not write"
    )
}
