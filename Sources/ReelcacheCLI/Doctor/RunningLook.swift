import Activity
import ControlAPI
import DiskCache
import Foundation
import HTTPModel
import HTTPTransport
import Reelcache
import Upstream

/// Finds the process that owns the cache and the one that uses the port.
struct RunningLook {
    let port: PortFacts
    let proxy: RunningFacts
    /// The size of its cache, in bytes; nil if it does not report it.
    let cached: Int64?

    /// The time limit for a proxy on this machine, in seconds.
    private static let patience = 10.0

    init(_ configuration: ProxyConfiguration) {
        let directory = configuration.cacheDirectory
        let wanted = configuration.baseURL
        guard let running = RunningProxy(cacheDirectory: directory) else {
            proxy = CacheOwner.isThere(in: directory) ? .owned(pid: CacheOwner.current(of: directory)?.pid) : .none
            port = Self.port(configuration.listen, wanted)
            cached = nil
            return
        }
        let isWhereWanted = wanted == nil || wanted == running.baseURL
        switch Self.version(at: running.baseURL, of: running) {
        case .success(let version):
            let cache = try? ControlJSON.decode(CacheReport.self, from: running.get(Endpoints.all.cache.traits.path))
            cached = cache?.size
            proxy = .answers(
                pid: running.processID, url: running.baseURL, version: version, directory: cache?.directory,
                isWhereWanted: isWhereWanted)
        case .failure(let error):
            cached = nil
            proxy = .silent(pid: running.processID, url: running.baseURL, reason: error.reason)
        }
        port = isWhereWanted ? .ours : Self.port(configuration.listen, wanted)
    }

    private struct Silence: Error { let reason: String }

    /// The version in `/stats`, if the proxy is healthy.
    private static func version(at url: String, of proxy: RunningProxy?) -> Result<String, Silence> {
        do throws(UpstreamError) {
            let health = try BlockingFetch.get(url: url + "/healthz", timeout: patience)
            guard health.status == 200 else { return .failure(Silence(reason: "/healthz answers \(health.status)")) }
        } catch { return .failure(Silence(reason: "\(error)")) }
        var request = BlockingFetch(url + "/stats")
        request.timeout = patience
        if let proxy, let token = try? ControlToken(of: proxy.cacheDirectory) {
            request.fields.append("Authorization", "Bearer \(token.text)")
        }
        do throws(UpstreamError) {
            let stats = try request.bytes()
            guard stats.status == 200, let snapshot = try? StatsJSON.read(stats.body) else {
                return .failure(Silence(reason: "/stats answers \(stats.status) in an unexpected way"))
            }
            return .success(String(snapshot.version.prefix(40)).printable)
        } catch { return .failure(Silence(reason: "\(error)")) }
    }

    // MARK: The port

    private static func port(_ listen: String, _ url: String?) -> PortFacts {
        guard let address = ListenAddress(listen), address.port != 0 else { return .any }
        guard let code = address.listenError else { return .free }
        guard code == EADDRINUSE else { return .refused(String(errno: code)) }
        if let url, case .success(let version) = version(at: url, of: nil) { return .otherProxy(version: version) }
        return .taken(by: PortOwner.name(port: address.port))
    }
}

extension RunningLook {
    /// Finds the process that listens at a port, if this user may see it.
    private enum PortOwner {
        /// /proc changes while it is read, so a line or a process can be missed.
        private static let attempts = 5

        static func name(port: Int) -> String? { (0..<attempts).lazy.compactMap { _ in find(port) }.first }

        private static func find(_ port: Int) -> String? {
            let sockets = ["/proc/net/tcp", "/proc/net/tcp6"].flatMap { listeners($0, port) }
            guard !sockets.isEmpty else { return nil }
            // A child that has just been started shares its parent's descriptors; the parent usually has the lower ID.
            for process in entries("/proc").compactMap({ Int($0) }).sorted() {
                let directory = "/proc/\(process)/fd"
                guard entries(directory).contains(where: { sockets.contains(target("\(directory)/\($0)")) }) else {
                    continue
                }
                let command = (try? String(contentsOfFile: "/proc/\(process)/comm", encoding: .utf8)) ?? "a process"
                return "\(command.filter { $0 != "\n" }.printable) (process \(process))"
            }
            return nil
        }

        private static func entries(_ directory: String) -> [String] {
            guard let stream = opendir(directory) else { return [] }
            defer { closedir(stream) }
            var names: [String] = []
            while let entry = readdir(stream) {
                names.append(
                    withUnsafeBytes(of: &entry.pointee.d_name) {
                        String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
                    })
            }
            return names
        }

        private static func target(_ link: String) -> String {
            var bytes = [UInt8](repeating: 0, count: 256)
            let count = bytes.withUnsafeMutableBytes {
                readlink(link, $0.baseAddress!.assumingMemoryBound(to: CChar.self), $0.count)
            }
            return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
        }

        /// The listening sockets of a port, as `/proc/PID/fd` shows them: `socket:[1234]`.
        ///
        ///     sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
        ///      0: 0100007F:1CA7 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1234 1 ...
        private static func listeners(_ file: String, _ port: Int) -> [String] {
            let text = (try? String(contentsOfFile: file, encoding: .utf8)) ?? ""
            return text.split(separator: "\n").compactMap { line in
                let words = line.split(separator: " ")
                guard words.count > 9, words[3] == "0A", let own = words[1].split(separator: ":").last,
                    Int(own, radix: 16) == port
                else { return nil }
                return "socket:[\(words[9])]"
            }
        }
    }
}
