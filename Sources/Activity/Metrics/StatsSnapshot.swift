/// The answer to `GET /stats`: the numbers at one moment. Counts are since the start of the process.
package struct StatsSnapshot: Sendable, Equatable {
    /// Milliseconds from a request to the first byte of its body.
    package struct FirstByte: Codable, Sendable, Equatable {
        package var count: UInt64
        package var p50, p90, p99: Double?

        package init(_ histogram: LatencyHistogram) {
            let counts = histogram.counts
            func milliseconds(_ quantile: Double) -> Double? {
                counts.quantile(quantile).map { Double($0 / 1000) / 1000 }
            }
            count = counts.count
            (p50, p90, p99) = (milliseconds(0.5), milliseconds(0.9), milliseconds(0.99))
        }
    }

    package var version: String
    package var uptimeSeconds: Double
    /// The numbers, in the order of `places`.
    package private(set) var numbers: [Int64]
    /// Requests sent to origins, by reason.
    package var reasons: [String: UInt64]
    package var firstByteOfHits, firstByteOfMisses: FirstByte
    package var errors: [String: UInt64]

    package init(_ metrics: ProxyMetrics, version: String, uptimeSeconds: Double) {
        (self.version, self.uptimeSeconds) = (version, uptimeSeconds)
        numbers = metrics.placed.map { number in
            switch number.reading {
            case .count(let count): Int64(clamping: count)
            case .level(let level): level
            default: 0
            }
        }
        reasons = Dictionary(
            uniqueKeysWithValues: FetchReason.allCases.map { ($0.rawValue, metrics.upstreamReasons[$0].value) })
        (firstByteOfHits, firstByteOfMisses) = (
            FirstByte(metrics.firstByteOfHits), FirstByte(metrics.firstByteOfMisses)
        )
        errors = metrics.errors.values
    }

    /// A count.
    package subscript(_ counter: KeyPath<ProxyMetrics, Counter>) -> UInt64 {
        UInt64(clamping: number(Self.names[keyPath: counter].name))
    }

    /// A level.
    package subscript(_ gauge: KeyPath<ProxyMetrics, Gauge>) -> Int64 { number(Self.names[keyPath: gauge].name) }

    /// Knows the names.
    private static let names = ProxyMetrics()
    /// Where each number stands, such as `cache.size`.
    package static let places = names.placed.compactMap { $0.name?.place }
    private static let indices = Dictionary(places.enumerated().map { ($1, $0) }) { a, _ in a }

    private func number(_ name: MetricFamily.Name?) -> Int64 {
        name?.place.flatMap { Self.indices[$0] }.map { numbers[$0] } ?? 0
    }

    /// Bytes served from the cache divided by all bytes served, 0...1; nil before the first byte.
    package var hitRatio: Double? {
        let (cached, fetched) = (self[\.bytesFromCache], self[\.bytesFromUpstream])
        return cached == 0 && fetched == 0 ? nil : Double(cached) / (Double(cached) + Double(fetched))
    }
}

extension StatsSnapshot: Decodable {
    private struct Key: CodingKey, ExpressibleByStringLiteral {
        let stringValue: String
        var intValue: Int? { nil }

        init(stringValue: String) { self.stringValue = stringValue }
        init(stringLiteral name: String) { stringValue = name }
        init?(intValue: Int) { nil }
    }

    /// Numbers that are missing, as a proxy of another version does not have them, are 0.
    package init(from decoder: any Decoder) throws {
        let all = try decoder.container(keyedBy: Key.self)
        version = try all.decode(String.self, forKey: "version")
        uptimeSeconds = try all.decode(Double.self, forKey: "uptime_seconds")
        errors = try all.decode([String: UInt64].self, forKey: "errors")
        firstByteOfHits = try all.decode(FirstByte.self, forKey: "first_byte_of_hits")
        firstByteOfMisses = try all.decode(FirstByte.self, forKey: "first_byte_of_misses")
        reasons = try all.nestedContainer(keyedBy: Key.self, forKey: "upstream")
            .decode([String: UInt64].self, forKey: "requests")
        numbers = Self.places.map { place in
            let parts = place.split(separator: ".").map { Key(stringValue: String($0)) }
            guard let last = parts.last else { return 0 }
            let object = parts.count == 1 ? all : try? all.nestedContainer(keyedBy: Key.self, forKey: parts[0])
            return (try? object?.decode(Int64.self, forKey: last)) ?? 0
        }
    }
}
