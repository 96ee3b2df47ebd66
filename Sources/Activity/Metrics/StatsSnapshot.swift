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
    /// Each number by its place, such as `cache.size`.
    package private(set) var numbers: [String: Int64] = [:]
    /// Requests sent to origins, by reason.
    package var reasons: [String: UInt64]
    package var firstByteOfHits, firstByteOfMisses: FirstByte
    package var errors: [String: UInt64]

    package init(_ metrics: ProxyMetrics, version: String, uptimeSeconds: Double) {
        (self.version, self.uptimeSeconds) = (version, uptimeSeconds)
        for number in metrics.numbers {
            guard let place = number.name?.place else { continue }
            switch number.reading {
            case .count(let count): numbers[place] = Int64(clamping: count)
            case .level(let level): numbers[place] = level
            default: break
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

    private func number(_ name: ProxyMetrics.Name?) -> Int64 { name?.place.flatMap { numbers[$0] } ?? 0 }

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
        for place in Self.names.numbers.compactMap({ $0.name?.place }) {
            let parts = place.split(separator: ".").map { Key(stringValue: String($0)) }
            guard let last = parts.last else { continue }
            let object = parts.count == 1 ? all : try? all.nestedContainer(keyedBy: Key.self, forKey: parts[0])
            if let number = try? object?.decode(Int64.self, forKey: last) { numbers[place] = number }
        }
    }
}
