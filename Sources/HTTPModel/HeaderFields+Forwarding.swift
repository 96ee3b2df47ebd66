/// Fields that are removed before a message is forwarded.
extension HeaderFields {
    /// Request fields that identify the client to an origin: they are for that origin only (RFC 9110 §15.4).
    package static let credentials = ["Authorization", "Cookie", "Proxy-Authorization"]

    /// Removes fields that concern one connection, and those that `Connection` names (RFC 9110 §7.6.1).
    package mutating func removeHopByHop(and isUnfit: (Line) -> Bool = { _ in false }) {
        // Usually none is left; otherwise they are a set, as an origin may name any number.
        var named: Set<String> = []
        for value in all("Connection") where !Self.hopByHop.contains(value) {
            for option in value.utf8.split(separator: ASCII.comma) {
                let name = ASCII.lowercased(Substring(ASCII.trimmed(option)))
                if !name.isEmpty, !Self.hopByHop.contains(name) { named.insert(name) }
            }
        }
        var kept: [Line] = []
        // The lines are often shared with the message as it was received, so that removing some would copy all.
        kept.reserveCapacity(lines.count)
        for line in lines
        where !Self.hopByHop.contains(line.name) && (named.isEmpty || !named.contains(ASCII.lowercased(line.name)))
            && !isUnfit(line)
        {
            kept.append(line)
        }
        lines = kept
    }

    /// Includes `close`, which is not a field, but the only other option that `Connection` may name.
    package static let hopByHop: FieldNames = [
        "close",
        "connection", "keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authorization", "te", "trailer",
        "transfer-encoding", "upgrade",
    ]

    package mutating func removeMalformed() { lines.removeAll(where: \.isMalformed) }
}

extension HeaderFields.Line {
    /// RFC 9110 §5.1, §5.5: a bare CR in a name or value could be taken for the end of a line.
    package var isMalformed: Bool {
        name.isEmpty || !ASCII.allSatisfy(name, ASCII.isToken) || !ASCII.allSatisfy(value, ASCII.isFieldContent)
    }
}
