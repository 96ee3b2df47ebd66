import CachePolicy
import Configuration
import Foundation
import HTTPModel
import Reelcache
import Upstream

/// Examines everything that goes wrong in practice, and reports the findings. The only place where
/// the doctor acts: the checks are functions of the facts that are collected here.
///
/// Contacts no other host unless a URL is named. Each step takes a few seconds at most. Blocks.
package struct Examination {
    private let sources: SettingSources
    private let argument: String?

    /// - Parameter url: the URL that a player should play; nil for none.
    package init(_ sources: SettingSources, url: String?) { (self.sources, argument) = (sources, url) }

    /// The findings; each thing comes after those that it depends on.
    package func findings() -> [Finding] {
        var findings = configurationFindings
        let configuration = settings.proxy
        let running = RunningLook(configuration)
        let disk = DiskLook(configuration, cached: running.cached, isOwned: running.proxy != .none)
        let visit = argument.map { URLVisit($0, configuration) }
        findings += disk.directory.findings + disk.tokens
        if let space = disk.space { findings.append(space.finding) }
        if let log = disk.log { findings.append(log) }
        findings += disk.sparse.findings
        findings.append(MachineLook.fileLimit(configuration).finding)
        findings.append(MachineLook.clock(origin: visit?.date).finding)
        findings.append(running.port.finding(configuration.listen))
        findings += running.proxy.findings(version: Proxy.version, directory: configuration.cacheDirectory)
        findings.append(MachineLook.names.finding)
        findings.append(MachineLook.certificates(configuration).finding)
        if let resolvers = MachineLook.resolvers(configuration, sources.environment).finding {
            findings.append(resolvers)
        }
        let host = configuration.baseURL.flatMap { URLComponents(string: $0)?.host } ?? "127.0.0.1"
        findings.append(ProxyVariableFacts(sources.environment, host: host).finding)
        return findings + (visit?.findings ?? [])
    }

    // MARK: Settings

    /// The settings; the defaults and flags if the configuration is invalid, so that everything else is examined
    /// nevertheless.
    private var settings: Settings {
        if let settings = try? sources.read() { return settings }
        var flagsAlone = SettingSources(environment: [:])
        flagsAlone.flags = sources.flags
        flagsAlone.configFlag = "/dev/null"
        return (try? flagsAlone.read()) ?? Settings()
    }

    private var configurationFindings: [Finding] {
        do throws(SettingsError) {
            let file = try sources.read().file
            return [
                .ok("configuration", file.map { "\($0) is valid" } ?? "no file: defaults, variables and flags apply")
            ]
        } catch {
            return error.lines.map { .problem("configuration", $0, "correct it; see reelcache config check") }
        }
    }
}
