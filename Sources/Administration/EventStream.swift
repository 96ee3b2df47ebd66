/// Decodes server-sent events that arrive in pieces (WHATWG HTML §9.2.6).
struct EventStream {
    struct Event: Equatable {
        /// `message` if the event has no name.
        var name: String
        /// The data lines, joined by line feeds.
        var data: [UInt8]
        /// The last ID received so far; empty if there was none.
        var id: String
    }

    private static let lineFeed = UInt8(ascii: "\n"), carriageReturn = UInt8(ascii: "\r")
    private static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]

    /// The received beginning of an incomplete line.
    private var rest: [UInt8] = []
    /// Whether a following line feed belongs to the carriage return before it.
    private var isAfterReturn = false
    private var isFirstLine = true
    // The incomplete event.
    private var name = ""
    private var data: [UInt8]?
    private var id = ""

    /// - Returns: the events that are complete now.
    mutating func append(_ bytes: some RandomAccessCollection<UInt8>) -> [Event] {
        var events: [Event] = []
        var left = bytes[...]
        while !left.isEmpty {
            if isAfterReturn {
                isAfterReturn = false
                if left.first == Self.lineFeed {
                    left = left.dropFirst()
                    continue
                }
            }
            guard let end = left.firstIndex(where: { $0 == Self.lineFeed || $0 == Self.carriageReturn }) else {
                rest.append(contentsOf: left)
                break
            }
            isAfterReturn = left[end] == Self.carriageReturn
            rest.append(contentsOf: left[..<end])
            if let event = endLine() { events.append(event) }
            left = left[left.index(after: end)...]
        }
        return events
    }

    /// - Returns: the event that ends with this line, if any.
    private mutating func endLine() -> Event? {
        var line = rest[...]
        if isFirstLine, line.starts(with: Self.byteOrderMark) { line = line.dropFirst(Self.byteOrderMark.count) }
        isFirstLine = false
        if line.isEmpty {
            rest.removeAll(keepingCapacity: true)
            return endEvent()
        }
        let field = line.prefix { $0 != UInt8(ascii: ":") }
        var value = line.dropFirst(field.count + 1)
        if value.first == UInt8(ascii: " ") { value = value.dropFirst() }
        // A comment line has an empty field name.
        switch String(decoding: field, as: UTF8.self) {
        case "event": name = String(decoding: value, as: UTF8.self)
        case "data": data = data.map { $0 + [Self.lineFeed] + value } ?? Array(value)
        case "id": if !value.contains(0) { id = String(decoding: value, as: UTF8.self) }
        default: break
        }
        rest.removeAll(keepingCapacity: true)
        return nil
    }

    private mutating func endEvent() -> Event? {
        defer { (name, data) = ("", nil) }
        return data.map { Event(name: name.isEmpty ? "message" : name, data: $0, id: id) }
    }
}
