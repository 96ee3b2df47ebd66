import Glibc

/// Why a transfer failed.
package enum UpstreamError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The transfer's progress.
    package enum Phase: String, Sendable {
        /// Waiting for a slot.
        case queue
        /// Waiting for other name look-ups.
        case names
        /// Looking up the name, connecting, shaking hands.
        case connect
        /// Waiting for the response's head.
        case response
        case body
    }

    /// Not an http or https URL that can be fetched.
    case badURL(String)
    /// The address policy does not permit the host's address.
    case addressRefused(host: String, address: String)
    case cannotResolve(host: String)
    case cannotConnect(host: String, detail: String)
    /// No socket could be created because this process, or the system, has too many open files. Not the host's fault.
    case outOfDescriptors(host: String)
    case tls(host: String, detail: String)
    case timedOut(host: String, phase: Phase)
    case tooManyRedirects(limit: Int)
    /// A redirect to something other than an http or https URL.
    case badRedirect(location: String)
    /// The connection was lost before the end of the response, or before its head.
    case broken(detail: String)
    case protocolViolation(detail: String)
    /// The proxy of the configuration could not be reached, or did not connect.
    case proxyFailed(proxy: String, host: String, detail: String)
    /// It wants other credentials.
    case proxyDenied(proxy: String)
    /// The caller no longer wants it (`BlockingFetch.isWanted`).
    case interrupted

    /// Whether the same request may succeed later.
    package var isTransient: Bool {
        switch self {
        case .cannotResolve, .cannotConnect, .outOfDescriptors, .timedOut, .broken, .proxyFailed: true
        case .badURL, .addressRefused, .tls, .tooManyRedirects, .badRedirect, .protocolViolation, .proxyDenied,
            .interrupted:
            false
        }
    }

    /// One line. Much of it comes from origins, so it must neither control a terminal nor fill it.
    package var description: String {
        let scalars = text.unicodeScalars.prefix(Self.longestText)
        return String(String.UnicodeScalarView(scalars.map { $0.properties.generalCategory == .control ? "?" : $0 }))
    }

    private static let longestText = 500

    private var text: String {
        switch self {
        case .badURL(let url): "\(url): not a URL that can be fetched"
        case .addressRefused(let host, let address):
            host == address ? "\(host): address not permitted" : "\(host): its address \(address) is not permitted"
        case .cannotResolve(let host): "\(host): no such host"
        case .cannotConnect(let host, let detail): "\(host): cannot connect: \(detail)"
        case .outOfDescriptors(let host):
            "\(host): cannot connect: too many files are open: raise the limit (ulimit -n, LimitNOFILE=)"
        case .tls(let host, let detail): "\(host): TLS: \(detail)"
        case .timedOut(let host, .queue):
            "\(host): too many transfers are running: raise max_fetches or max_fetches_per_host"
        case .timedOut(let host, .names): "\(host): too many names are being looked up: a name server is not answering"
        case .timedOut(let host, .connect): "\(host): timed out while connecting"
        case .timedOut(let host, .response): "\(host): timed out while waiting for the response"
        case .timedOut(let host, .body): "\(host): timed out in the body of the response"
        case .tooManyRedirects(let limit): "more than \(limit) redirects"
        case .badRedirect(let location): "redirected to \(location), which cannot be fetched"
        case .broken(let detail): "connection lost: \(detail)"
        case .protocolViolation(let detail): "invalid HTTP: \(detail)"
        case .proxyFailed(let proxy, let host, let detail):
            "\(host): cannot be reached through \(proxy) (upstream_proxy): \(detail)"
        case .proxyDenied(let proxy):
            "\(proxy) (upstream_proxy) does not accept the credentials: write them like http://USER:PASSWORD@\(proxy)"
        case .interrupted: "interrupted"
        }
    }
}

extension UpstreamError {
    /// Whether an error of `socket` means a lack of descriptors.
    static func isLackOfDescriptors(_ code: Int32) -> Bool { code == EMFILE || code == ENFILE }
}
