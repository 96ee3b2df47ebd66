import CachePolicy
import HTTPModel

extension FuzzTarget {
    static let addresses = [
        FuzzTarget(
            name: "url",
            seeds: [
                "https://example.org:8443/a%20b/../c?d=e#f\n//other.example/x?y", "/https/example.org/film.mp4\n../b",
                "/http://[::1]:80/\n?q",
                "http://127.0.0.1:7335/https/example.org/a\nhttps://EXAMPLE.org",
                "https://user:secret@example.org/ü\n/",
            ],
            run: url),
        FuzzTarget(
            name: "address",
            seeds: [
                "127.0.0.1", "::ffff:10.0.0.1", "fe80::1", "192.168.0.0/16", "2001:db8::/32", "nas.local",
                "64:ff9b::1.2.3.4",
            ], run: address),
        FuzzTarget(
            name: "rules",
            seeds: [
                "*.cdn.example:443\n/vod/*\nhttps://cdn.example{path}?{query}\nutm_*\nahead 4MiB\nhttps://edge.cdn.example/vod/a?utm_x=1&b=2",
                "a*b*c*d\n*a*a*a*b\n{host}",
            ],
            run: rules),
        FuzzTarget(
            name: "query", seeds: ["/api/v1/resources?url=https%3A%2F%2Fa&limit=5&x", "/?a=%zz&a=b&&=c"], run: query),
    ]

    private static func url(_ input: [UInt8]) throws {
        let lines = input.lines, text = lines[0]
        let place = ProxyPlace(url: "http://127.0.0.1:7335", names: ["tv.example"])
        _ = try? OriginURL(argument: text, at: place)
        for url in [try? OriginURL(url: text), try? OriginURL(target: text)].compactMap({ $0 }) {
            try hold((try? OriginURL(url: url.absolute)) == url, "\(url.absolute) reads back as another")
            try hold((try? OriginURL(target: url.proxyPath)) == url, "\(url.proxyPath) reads back as another")
            try hold(
                url.absolute.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F },
                "characters that no URL has: \(url.absolute.debugDescription)")
            try hold((1...65535).contains(url.port ?? 1), "port \(url.port ?? 0)")
            for reference in lines.dropFirst() {
                guard let other = url.resolving(reference) else { continue }
                try hold(
                    (try? OriginURL(url: other.absolute)) == other,
                    "\(other.absolute), to which \(reference) leads, reads back as another")
            }
        }
        let normalized = PercentEncoding.normalized(text)
        try hold(
            PercentEncoding.normalized(normalized) == normalized, "\(normalized.debugDescription) is not normal yet")
    }

    private static func address(_ input: [UInt8]) throws {
        let text = input.text
        if let address = IPAddress(text) {
            try hold(IPAddress(address.description) == address, "\(address) reads back as another")
        }
        guard let policy = try? AddressPolicy(allow: [text]), let address = IPAddress("10.1.2.3") else { return }
        _ = policy
        _ = address
    }

    private static func rules(_ input: [UInt8]) throws {
        let lines = input.lines
        let url = lines.last.flatMap { try? OriginURL(url: $0) }
        for line in lines {
            _ = try? KeyTemplate(line)
            _ = try? FillMode(line)
            _ = try? HostPattern(line)
            _ = try? Glob(path: line)
            _ = try? Mount(parsing: line)
        }
        _ = url
    }

    private static func query(_ input: [UInt8]) throws {
        guard let values = try? QueryParameters(target: input.text) else { return }
        _ = (values["url"], values.names(except: ["url"]))
    }
}
