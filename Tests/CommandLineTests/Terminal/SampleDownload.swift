import Downloads
import Foundation

extension Download {
    /// One of `http://a/NAME`.
    static func sample(
        _ id: Int64, _ name: String, _ state: Download.State, _ change: (inout Download) -> Void = { _ in }
    ) throws -> Download {
        var report = Download(id: id, url: "http://a/\(name)", added: Date(seconds: 1_000))
        report.state = state
        change(&report)
        return report
    }

    /// One that is under way.
    static func running(
        _ id: Int64, _ name: String, _ bytes: Int64, of total: Int64?, rate: Int64? = nil, eta: Int64? = nil
    ) throws -> Download {
        try sample(id, name, .downloading) {
            ($0.bytes, $0.total, $0.bytesPerSecond, $0.eta) = (bytes, total, rate, eta)
        }
    }
}
