import CachePolicy
import Configuration
import Foundation
import HTTPModel
import Reelcache
import Upstream

/// Requests the first byte of a URL from its origin, and then from the proxy.
struct URLVisit {
    let findings: [Finding]
    /// The origin's time.
    let date: Int64?

    init(_ argument: String, _ configuration: ProxyConfiguration) {
        do {
            (findings, date) = try Self.visit(argument, configuration)
        } catch {
            findings = [Finding(check: "URL", severity: .problem, text: "\(error)", advice: nil)]
            date = nil
        }
    }

    private static func visit(_ argument: String, _ configuration: ProxyConfiguration) throws -> ([Finding], Int64?) {
        let running = RunningProxy(cacheDirectory: configuration.cacheDirectory)
        let place = ProxyPlace(
            url: running?.baseURL ?? configuration.baseURL, names: configuration.names,
            mounts: try ProxyConfiguration.policy(of: configuration.mounts))
        let url = try OriginURL(argument: argument, at: place)
        let policy = try configuration.policy()
        let rule = policy.resolve(url).resolvedRule
        var rules = RuleFacts(url: policy.mask.masked(url.absolute))
        (rules.isServed, rules.isOffline) = (policy.target(of: url) != nil, policy.isOffline)
        (rules.bypasses, rules.largestStored) = (rule.bypasses, rule.largestStored)
        var findings = [rules.finding]

        var (media, fields) = (url, rule.headers)
        if let resolver = rule.resolver {
            do throws(ResolverFailure) {
                let location = try ResolverCommand.run(resolver, for: url, now: { Int64(time(nil)) })
                location.addHeaders(to: &fields, for: location.url.absolute)
                media = location.url
                findings.append(.ok("resolver", "\(resolver.name.printable) finds media at \(media.host)"))
            } catch {
                findings.append(.problem("resolver", "\(error)", "run its command by hand: the page may have none"))
                return (findings, nil)
            }
        }
        let networks = try AddressPolicy(allow: configuration.allow).on(LocalNetworks.look() ?? .none)
        let outgoing = try configuration.outgoingProxy()
        let host = AddressFacts(media.host, networks, outgoing)
        findings.append(host.finding)
        guard host.isReachable else { return (findings, nil) }
        let origin = OriginProbe(configuration, through: outgoing)
            .request(media.absolute, fields: fields, policy: networks)
        findings += origin.originFindings
        if let running, let target = policy.target(of: url) {
            let player = running.baseURL + target
            let answer = OriginProbe(configuration, through: nil).request(player, policy: .everything)
            findings.append(answer.proxyFinding(origin, url: policy.mask.masked(player)))
        }
        return (findings, origin.date)
    }
}

extension AddressFacts {
    init(_ host: String, _ policy: AddressPolicy, _ outgoing: OutgoingProxy?) {
        self.host = host
        if let outgoing, outgoing.carries(host: host) { proxy = outgoing.address }
        addresses = proxy != nil && IPAddress(host) == nil ? [] : MachineLook.addresses(of: host)
        refused = addresses.first { text in
            IPAddress(text).map { !policy.permits(host: host, address: $0) } ?? false
        }
    }
}

private extension AddressPolicy {
    /// Permits every address, because the proxy may listen at any.
    static var everything: AddressPolicy {
        do { return try AddressPolicy(allow: ["0.0.0.0/0", "::/0"]) } catch { preconditionFailure("\(error)") }
    }
}

private extension AnswerFacts {
    var date: Int64? { if case .head(let head) = self { head.date } else { nil } }
}
