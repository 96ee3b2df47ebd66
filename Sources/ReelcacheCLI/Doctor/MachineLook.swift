import Foundation
import HTTPModel
import Reelcache
import Upstream

// no traps: limits that are clamped.

/// Examines the machine.
enum MachineLook {
    static func fileLimit(_ configuration: ProxyConfiguration) -> FileLimitFacts {
        var limit = rlimit()
        let isKnown = getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0
        let loops = configuration.threads ?? ProcessInfo.processInfo.activeProcessorCount
        return FileLimitFacts(
            most: isKnown ? Int(clamping: limit.rlim_max) : 1024, needed: DescriptorBudget.needed(loops: loops))
    }

    static func clock(origin: Int64?) -> ClockFacts {
        var info = stat()
        let built = stat("/proc/self/exe", &info) == 0 ? Int64(info.st_mtim.tv_sec) : 0
        return ClockFacts(now: Int64(time(nil)), built: built, origin: origin)
    }

    static var names: NameFacts {
        let text = try? String(contentsOfFile: "/etc/resolv.conf", encoding: .utf8)
        let servers = text?.split(whereSeparator: \.isNewline).count { $0.hasPrefix("nameserver") }
        return NameFacts(servers: servers, resolvesLocalhost: !addresses(of: "localhost").isEmpty)
    }

    /// Uses the system's name lookup. Blocks for as long as that takes.
    static func addresses(of host: String) -> [String] {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var found: UnsafeMutablePointer<addrinfo>?
        let bare = host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
        guard getaddrinfo(bare, nil, &hints, &found) == 0 else { return [] }
        defer { freeaddrinfo(found) }
        var (addresses, next): ([String], UnsafeMutablePointer<addrinfo>?) = ([], found)
        while let entry = next?.pointee {
            next = entry.ai_next
            var name = [CChar](repeating: 0, count: Int(NI_MAXHOST))
            guard
                getnameinfo(entry.ai_addr, entry.ai_addrlen, &name, socklen_t(name.count), nil, 0, NI_NUMERICHOST) == 0
            else { continue }
            addresses.append(String(decoding: name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self))
        }
        return addresses
    }

    /// - Parameter environment: of this process; that of the proxy is usually the same.
    static func resolvers(_ configuration: ProxyConfiguration, _ environment: [String: String]) -> ResolverFacts {
        var programs: [String] = []
        for program in configuration.resolvers.compactMap(\.command.first) where !programs.contains(program) {
            programs.append(program)
        }
        return ResolverFacts(
            programs: programs, missing: programs.filter { !ResolverEnvironment.finds($0, in: environment) })
    }

    // MARK: Certificates

    /// The places in which distributions keep their certificates.
    private static let stores = [
        "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
        "/etc/ssl/cert.pem",
    ]

    static func certificates(_ configuration: ProxyConfiguration) -> CertificateFacts {
        let configured = configuration.certificateFile
        let file = configured ?? stores.first { access($0, F_OK) == 0 }
        return CertificateFacts(file: file, isConfigured: configured != nil, count: file.flatMap(count))
    }

    /// Far more bytes than on any system.
    private static let longestStore = 16 << 20

    private static func count(_ file: String) -> Int? {
        guard let handle = FileHandle(forReadingAtPath: file) else { return nil }
        defer { try? handle.close() }
        guard let data = try? handle.read(upToCount: longestStore) ?? Data() else { return nil }
        return String(decoding: data, as: UTF8.self).split(
            separator: "-----BEGIN CERTIFICATE-----", omittingEmptySubsequences: false
        )
        .count - 1
    }
}
