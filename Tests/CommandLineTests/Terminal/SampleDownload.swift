import Downloads
import Foundation

extension DownloadReport {
    /// One of `http://a/NAME`.
    static func sample(
        _ id: Int64, _ name: String, _ state: DownloadState, _ change: (inout DownloadReport) -> Void = { _ in }
    ) throws -> DownloadReport {
        let members: [String: Any] = [
            "id": id, "url": "http://a/\(name)", "state": state.rawValue, "priority": "normal", "connections": 1,
            "isPinned": true, "bytes": 0, "failures": 0,
            "added": 1_000,
        ]
        var report = try JSONDecoder().decode(
            DownloadReport.self, from: JSONSerialization.data(withJSONObject: members))
        change(&report)
        return report
    }

    /// One that is under way.
    static func running(
        _ id: Int64, _ name: String, _ bytes: Int64, of total: Int64?, rate: Int64? = nil, eta: Int64? = nil
    ) throws -> DownloadReport {
        try sample(id, name, .downloading) { ($0.bytes, $0.total, $0.rate, $0.eta) = (bytes, total, rate, eta) }
    }
}
