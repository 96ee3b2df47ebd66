/// Server-sent events as they come in pieces (WHATWG HTML §9.2.6).
struct EventStream {
    struct Event: Equatable {
        /// `message` where it has no name.
        var name: String
        /// Its lines, with a line feed between.
        var data: [UInt8]
        /// The last that was said up to here; empty where none was.
        var id: String
    }

    private static let lineFeed = UInt8(ascii: "\n"), carriageReturn = UInt8(ascii: "\r")
    private static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]

    /// What has come of a line whose end has not.
    private var rest: [UInt8] = []
    /// A line feed that comes next belongs to the carriage return before it.
    private var isAfterReturn = false
    private var isFirstLine = true
    // The event that is not whole yet.
    private var name = ""
    private var data: [UInt8]?
    private var id = ""

    /// - Returns: the events that are whole now.
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

    /// - Returns: the event that ends with this line, if it is one.
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
        // A comment has an empty name.
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
