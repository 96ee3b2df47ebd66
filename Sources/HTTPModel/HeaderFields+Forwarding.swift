/// Fields that are removed before a message is forwarded.
extension HeaderFields {
    /// Request fields that identify the client to an origin: they are for that origin only (RFC 9110 §15.4).
    package static let credentials = ["Authorization", "Cookie", "Proxy-Authorization"]

    /// Removes fields that concern one connection, and those that `Connection` names (RFC 9110 §7.6.1).
    package mutating func removeHopByHop() {
        var named: Set<String> = []
        for value in all("Connection") {
            for option in value.utf8.split(separator: ASCII.comma) {
                named.insert(ASCII.lowercased(Substring(ASCII.trimmed(option))))
            }
        }
        // Usually none is left; otherwise they become a set, as an origin may name any number.
        named = named.filter { !$0.isEmpty && !Self.hopByHop.contains($0) }
        lines.removeAll {
            Self.hopByHop.contains($0.name) || !named.isEmpty && named.contains(ASCII.lowercased($0.name))
        }
    }

    /// Includes `close`, which is not a field, but the only other option that `Connection` may name.
    package static let hopByHop: FieldNames = [
        "close",
        "connection", "keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authorization", "te", "trailer",
        "transfer-encoding", "upgrade",
    ]

    /// RFC 9110 §5.1, §5.5: a bare CR in a name or value could be taken for the end of a line.
    package mutating func removeMalformed() {
        lines.removeAll { line in
            line.name.isEmpty || !line.name.utf8.allSatisfy { ASCII.isToken($0) }
                || line.value.utf8.contains { $0 < 0x20 && $0 != 0x09 || $0 == 0x7F }
        }
    }
}
