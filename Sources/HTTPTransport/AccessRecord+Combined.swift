import HTTPModel

extension AccessRecord {
    /// One line of the combined format of Apache httpd, followed by what a cache knows besides, with its line end:
    ///
    ///     CLIENT - - [TIME] "METHOD URL VERSION" STATUS BYTES "REFERER" "PLAYER" "CACHE-STATUS" CACHE ORIGIN FIRST ALL
    ///
    /// `CACHE` and `ORIGIN` are bytes, `FIRST` and `ALL` milliseconds to the first byte and to the end. What is unknown
    /// is `-`. The status is 499, as nginx writes it, if the client disconnected before it had an answer.
    /// Source: https://httpd.apache.org/docs/2.4/logs.html#combined
    package var combinedLine: [UInt8] {
        let protocolName = version == .http10 ? "HTTP/1.0" : "HTTP/1.1"
        var line = "\(Self.host(of: client)) - - [\(CalendarTime(time).logText)] "
        line += Self.quoted("\(method) \(url) \(protocolName)")
        line += " \(status ?? 499) \(bytes > 0 ? String(bytes) : "-")"
        for text in [referrer, userAgent, cacheStatus] { line += " " + Self.quoted(text ?? "-") }
        let first = firstByteMilliseconds.map { String($0) } ?? "-"
        line += " \(cacheBytes) \(originBytes) \(first) \(milliseconds)\n"
        return Array(line.utf8)
    }

    /// The address without its port, and without the brackets of IPv6.
    private static func host(of client: String) -> Substring {
        client.hasPrefix("[") ? client.dropFirst().prefix { $0 != "]" } : client.prefix { $0 != ":" }
    }

    /// The text in quotation marks. Those inside, backslashes and `isEscapedInLines` are escaped as Apache does: `\"`,
    /// `\\`, `\x1b`.
    private static func quoted(_ text: String) -> String {
        text.unicodeScalars.reduce(into: "\"") { quoted, scalar in
            switch scalar {
            case "\"", "\\":
                quoted += "\\"
                quoted.unicodeScalars.append(scalar)
            case _ where scalar.isEscapedInLines:
                for byte in String(scalar).utf8 { quoted += "\\x" + (byte < 16 ? "0" : "") + String(byte, radix: 16) }
            default: quoted.unicodeScalars.append(scalar)
            }
        } + "\""
    }
}
