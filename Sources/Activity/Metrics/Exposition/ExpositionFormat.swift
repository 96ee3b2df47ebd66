/// A text form in which `GET /metrics` answers.
package enum ExpositionFormat: Sendable, CaseIterable {
    /// OpenMetrics 1.0.
    case openMetrics
    /// The text format of Prometheus, 0.0.4.
    case prometheus

    package var contentType: String {
        switch self {
        case .openMetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8"
        case .prometheus: "text/plain; version=0.0.4; charset=utf-8"
        }
    }

    /// The form that a client prefers: OpenMetrics if it names it and likes no other better, else the text format,
    /// which every scraper reads.
    /// - Parameter accept: the field `Accept` (RFC 9110 §12.5.1); nil if the request has none. What cannot be
    ///   understood in it is ignored.
    package init(accept: String?) {
        let ranges = (accept ?? "").split(separator: ",").compactMap { MediaRange($0) }
        let openMetrics = ranges.filter(\.isOpenMetrics).map(\.weight).max() ?? 0
        // The most specific range counts.
        let text = [\MediaRange.isText, \.isAnyText, \.isAnything].lazy.compactMap { kind in
            ranges.filter { $0[keyPath: kind] }.map(\.weight).max()
        }.first
        self = openMetrics > 0 && openMetrics >= text ?? 0 ? .openMetrics : .prometheus
    }

    /// One element of `Accept`.
    private struct MediaRange {
        let type: String
        let version: String?
        /// In thousandths.
        let weight: Int

        /// - Returns: nil for a weight that is not one.
        init?(_ text: Substring) {
            let parts = text.split(separator: ";").map { Self.trimmed($0).lowercased() }
            var parameters: [Substring: String] = [:]
            for part in parts.dropFirst() {
                let pair = part.split(separator: "=", maxSplits: 1)
                if pair.count == 2 { parameters[pair[0]] = pair[1].filter { $0 != "\"" } }
            }
            guard let type = parts.first, let weight = Self.weight(parameters["q"]) else { return nil }
            (self.type, self.weight, version) = (type, weight, parameters["version"])
        }

        var isOpenMetrics: Bool {
            type == "application/openmetrics-text" && [nil, "1.0.0", "0.0.1"].contains(version)
        }
        var isText: Bool { type == "text/plain" && [nil, "0.0.4"].contains(version) }
        var isAnyText: Bool { type == "text/*" }
        var isAnything: Bool { type == "*/*" }

        private static func trimmed(_ text: Substring) -> Substring {
            var text = text.drop { $0 == " " || $0 == "\t" }
            while text.last == " " || text.last == "\t" { text.removeLast() }
            return text
        }

        /// RFC 9110 §12.4.2; 1000 without one.
        private static func weight(_ text: String?) -> Int? {
            guard let text else { return 1000 }
            guard text.utf8.count <= 5, let weight = Double(text), (0...1).contains(weight) else { return nil }
            return Int((weight * 1000).rounded())
        }
    }
}
