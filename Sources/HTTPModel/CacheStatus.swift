/// How this cache handled a request, as shown in `Cache-Status` (RFC 9211), the log and the dashboard.
package struct CacheStatus: Sendable, Equatable {
    /// Why a request was forwarded to the origin (RFC 9211 §2.2).
    package enum Forward: String, Sendable, CaseIterable {
        case bypass, method
        case uriMiss = "uri-miss"
        case varyMiss = "vary-miss"
        case miss, request, stale, partial
    }

    /// Answered without the origin. A forwarded request is not a hit (RFC 9211 §2.1): then only `fwd` is sent.
    package var isHit = false
    package var forward: Forward?
    /// The status of the origin's answer.
    package var forwardStatus: Int?
    package var isStored = false
    /// Collapsed into the transfer of another request.
    package var isCollapsed = false
    /// Seconds of freshness left; negative if stale.
    package var ttl: Int64?
    package var key: String?
    package var detail: String?

    package static func hit(ttl: Int64? = nil, detail: String? = nil) -> CacheStatus {
        CacheStatus(isHit: true, ttl: ttl, detail: detail)
    }

    package static func forwarded(
        _ reason: Forward, status: Int? = nil, isStored: Bool = false, isCollapsed: Bool = false, detail: String? = nil
    ) -> CacheStatus {
        CacheStatus(
            forward: reason, forwardStatus: status, isStored: isStored, isCollapsed: isCollapsed, detail: detail)
    }

    /// The field's value: `reelcache; fwd=uri-miss; stored; collapsed`.
    package var fieldValue: String {
        var bytes: [UInt8] = []
        write(to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Appends the field's value to a head under construction, without an intermediate string, as every answer has
    /// one.
    package func write(to bytes: inout [UInt8]) {
        bytes.append(upTo: Self.mostOfBeginning) { writeBeginning(to: &$0) }
        if let key { bytes += "; key=\(Self.string(key))".utf8 }
        if let detail { bytes += "; detail=\(Self.string(detail))".utf8 }
    }

    /// Whether the beginning is all of the value.
    package var isShort: Bool { key == nil && detail == nil }

    /// At most so many bytes have the parameters before `key`.
    package static let mostOfBeginning = 128

    /// Writes the value up to the parameters that are texts.
    package func writeBeginning(to line: inout LineWriter) {
        line.append("reelcache")
        if let forward {
            line.append("; fwd=")
            line.append(text: forward.rawValue)
        } else if isHit {
            line.append("; hit")
        }
        if let forwardStatus {
            line.append("; fwd-status=")
            line.append(decimal: Int64(forwardStatus))
        }
        if isStored { line.append("; stored") }
        if isCollapsed { line.append("; collapsed") }
        if let ttl {
            line.append(ttl < 0 ? "; ttl=-" : "; ttl=")
            line.append(decimal: min(ttl.magnitude, Self.greatestInteger))
        }
    }

    /// An Integer of RFC 9651 §3.3.1 has at most 15 digits.
    private static let greatestInteger: UInt64 = 999_999_999_999_999

    /// A String of RFC 9651 §3.3.3 is printable ASCII; other characters become question marks.
    private static func string(_ text: String) -> String {
        var quoted = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\": quoted += "\\\(scalar)"
            case " "..."~": quoted.unicodeScalars.append(scalar)
            default: quoted += "?"
            }
        }
        return quoted + "\""
    }
}

extension CacheStatus {
    /// Neither answered from the cache nor forwarded.
    package init(detail: String? = nil) { self.detail = detail }
}
