import Glibc

/// One pass over a request head. Each step parses one part of the grammar and leaves `position` after it.
struct RequestScanner {
    enum Stop: Error {
        case incomplete
        case fault(RequestFault)
    }

    /// RFC 9112 §2.2 demands tolerance for "at least one" empty line before a request; a client that sends more
    /// than this many is not sending a request.
    private static let maxEmptyLines = 4
    private static let maxMethodBytes = 32

    private let bytes: UnsafeRawBufferPointer
    private let limits: RequestLimits
    private let end: Int
    private(set) var position = 0
    /// The offset of what follows the target; the spans in a head count from here.
    private var start = 0
    private let former: RequestHead.Rest?

    init(_ bytes: UnsafeRawBufferPointer, limits: RequestLimits, former: RequestHead.Rest?) {
        self.bytes = bytes
        self.limits = limits
        self.former = former
        end = min(bytes.count, limits.maxHeadBytes)
    }

    mutating func scanHead(_ lines: RequestLines?) throws(Stop) -> RequestHead {
        try skipEmptyLines()
        let input = UnsafeRawBufferPointer(rebasing: bytes[position..<end])
        if let lines, let line = lines.line(beginning: input) { return try scanHead(after: line, in: lines) }
        lines?.forgetLast()
        let start = position
        let method = try scanMethod()
        let target = text(try scanTarget())
        lines?.add(UnsafeRawBufferPointer(rebasing: bytes[start..<position]), method, target)
        let (rest, otherRange) = try scanRest()
        do { return try RequestHead(method, target, rest, otherRange: otherRange) } catch { throw .fault(error) }
    }

    /// Scans the rest of a head with a known line.
    private mutating func scanHead(after line: RequestLines.Line, in lines: RequestLines) throws(Stop) -> RequestHead {
        position += line.length
        let (rest, otherRange) = try scanRest()
        if otherRange == nil, let head = line.head(with: rest) { return head }
        do {
            let head = try RequestHead(line.method, line.target, rest, otherRange: otherRange)
            // The fields of others are this head's own.
            if otherRange == nil, rest === former { lines.keep(head, of: line) }
            return head
        } catch { throw .fault(error) }
    }

    private func text(_ target: Range<Int>) -> String {
        let sent = UnsafeRawBufferPointer(rebasing: bytes[target])
        return sent.allSatisfy { $0 < 0x80 }
            ? String(decoding: sent, as: UTF8.self) : PercentEncoding.encodingNonASCII(sent)
    }

    /// - Returns: also the value of `Range`, if all but that equals the former head.
    private mutating func scanRest() throws(Stop) -> (RequestHead.Rest, otherRange: String?) {
        // It ends with an empty line: if all of it stands here, the head ends there, too.
        if let former {
            if former.bytes.withUnsafeBytes({ has($0, at: position) }) {
                position += former.bytes.count
                return (former, nil)
            }
            if let range = takeOtherRange(than: former) { return (former, range) }
        }
        start = position
        let version = try scanVersion()
        var framing = MessageFraming()
        let fields = try scanFields(&framing)
        return (RequestHead.Rest([UInt8](bytes[start..<position]), version, framing, fields), nil)
    }

    /// Takes the same as in a former head up to its end, but for the value of `Range`, if that is of plain characters:
    /// a player seeks, or reads on.
    private mutating func takeOtherRange(than former: RequestHead.Rest) -> String? {
        guard let value = former.range?.range else { return nil }
        return former.bytes.withUnsafeBytes { known in
            let after = UnsafeRawBufferPointer(rebasing: known[value.upperBound...])
            guard has(UnsafeRawBufferPointer(rebasing: known[..<value.lowerBound]), at: position) else { return nil }
            let first = position + value.lowerBound
            var last = first
            while last < end, bytes[last] > ASCII.space, bytes[last] < 0x7F { last += 1 }
            guard last > first, has(after, at: last) else { return nil }
            position = last + after.count
            return String(decoding: bytes[first..<last], as: UTF8.self)
        }
    }

    // MARK: - Request line

    private mutating func skipEmptyLines() throws(Stop) {
        var lines = 0
        while try isAtLineEnd() {
            guard lines < Self.maxEmptyLines else { throw .fault(.tooManyEmptyLines) }
            try takeLineEnd()
            lines += 1
        }
    }

    private mutating func scanMethod() throws(Stop) -> RequestMethod {
        let start = position
        skip(while: ASCII.isToken)
        guard position - start <= Self.maxMethodBytes else { throw .fault(.methodTooLong) }
        guard try next() == ASCII.space, position > start else { throw .fault(notAMethod(from: start)) }
        defer { position += 1 }
        return method(UnsafeRawBufferPointer(rebasing: bytes[start..<position]))
    }

    /// A TLS handshake begins with record type 22: users who write `https://127.0.0.1` get a specific error.
    private func notAMethod(from start: Int) -> RequestFault {
        position == start && bytes[position] == 22 ? .isTLS : .notHTTP
    }

    /// Methods are case-sensitive (RFC 9110 §9.1).
    private func method(_ name: UnsafeRawBufferPointer) -> RequestMethod {
        func isNamed(_ method: StaticString) -> Bool {
            name.count == method.utf8CodeUnitCount && memcmp(name.baseAddress!, method.utf8Start, name.count) == 0
        }
        if isNamed("GET") { return .get }
        if isNamed("HEAD") { return .head }
        if isNamed("OPTIONS") { return .options }
        return .other(String(decoding: name, as: UTF8.self))
    }

    private mutating func scanTarget() throws(Stop) -> Range<Int> {
        let first = position
        skip { $0 > ASCII.space && $0 != 0x7F }
        let limit = mayBeLong(bytes[first..<position]) ? limits.maxLongTargetBytes : limits.maxTargetBytes
        guard position - first <= limit else { throw .fault(.targetTooLong(limit)) }
        guard try next() == ASCII.space else { throw .fault(notATarget) }
        guard position > first else { throw .fault(.notHTTP) }
        defer { position += 1 }
        return first..<position
    }

    /// Compares only as much of the prefix as the target has, so that the verdict does not depend on how much has
    /// arrived.
    private func mayBeLong(_ target: Slice<UnsafeRawBufferPointer>) -> Bool {
        target.count > limits.maxTargetBytes && zip(target, limits.longTargetPrefix.utf8).allSatisfy(==)
    }

    private var notATarget: RequestFault {
        let byte = bytes[position]
        return byte == ASCII.carriageReturn || byte == ASCII.lineFeed ? .noVersion : .badTarget
    }

    /// RFC 9112 §2.3. A minor version above 1 is treated as 1.1 (RFC 9110 §2.5).
    private mutating func scanVersion() throws(Stop) -> HTTPVersion {
        try take("HTTP/")
        let major = try takeDigit()
        guard major < 2 else { throw .fault(.unsupportedVersion) }
        guard major == 1 else { throw .fault(.badVersion) }
        try take(".")
        let minor = try takeDigit()
        guard try isAtLineEnd() else { throw .fault(.badVersion) }
        try takeLineEnd()
        return minor == 0 ? .http10 : .http11
    }

    private mutating func take(_ text: StaticString) throws(Stop) {
        for offset in 0..<text.utf8CodeUnitCount {
            guard try next() == text.utf8Start[offset] else { throw .fault(.badVersion) }
            position += 1
        }
    }

    private mutating func takeDigit() throws(Stop) -> UInt8 {
        let byte = try next()
        guard ASCII.isDigit(byte) else { throw .fault(.badVersion) }
        position += 1
        return byte &- 0x30
    }

    // MARK: - Field lines

    private mutating func scanFields(_ framing: inout MessageFraming) throws(Stop) -> [RequestHead.FieldSpan] {
        var fields: [RequestHead.FieldSpan] = []
        fields.reserveCapacity(16)
        while try !isAtLineEnd() {
            guard fields.count < limits.maxFields else { throw .fault(.tooManyFields(limits)) }
            fields.append(try scanField(&framing))
        }
        try takeLineEnd()
        return fields
    }

    private mutating func scanField(_ framing: inout MessageFraming) throws(Stop) -> RequestHead.FieldSpan {
        let name = try scanFieldName()
        let value = try scanFieldValue()
        try takeLineEnd()
        do { try framing.note(name: bytes[name], value: bytes[value]) } catch { throw .fault(error) }
        return RequestHead.FieldSpan(name: span(name), value: span(value))
    }

    private mutating func scanFieldName() throws(Stop) -> Range<Int> {
        let first = position
        // Nearly all names are of letters and hyphens.
        skip { ASCII.isLetter($0) || $0 == UInt8(ascii: "-") }
        skip(while: ASCII.isToken)
        guard try next() == ASCII.colon else { throw .fault(notAName(from: first)) }
        guard position > first else { throw .fault(.badFieldName) }
        defer { position += 1 }
        return first..<position
    }

    /// RFC 9112 §5.1 and §5.2: with white space before a colon, or folded lines, two servers can read different
    /// requests from the same bytes.
    private func notAName(from first: Int) -> RequestFault {
        guard ASCII.isOptionalSpace(bytes[position]) else { return .badFieldName }
        return position == first ? .foldedLine : .spaceBeforeColon
    }

    /// The value without the white space around it; stops at the end of the line.
    private mutating func scanFieldValue() throws(Stop) -> Range<Int> {
        skip(while: ASCII.isOptionalSpace)
        let first = position
        skipPlainWords()
        skip(while: ASCII.isFieldContent)
        guard try isAtLineEnd() else { throw .fault(.badFieldValue) }
        var last = position
        while last > first, ASCII.isOptionalSpace(bytes[last - 1]) { last -= 1 }
        return first..<last
    }

    // MARK: - Bytes

    private func has(_ other: UnsafeRawBufferPointer, at place: Int) -> Bool {
        end - place >= other.count && memcmp(bytes.baseAddress! + place, other.baseAddress!, other.count) == 0
    }

    @inline(__always)
    private func next() throws(Stop) -> UInt8 {
        guard position < end else { throw noMoreBytes }
        return bytes[position]
    }

    /// The meaning of input that ends within the head.
    private var noMoreBytes: Stop { bytes.count >= limits.maxHeadBytes ? .fault(.headTooLong(limits)) : .incomplete }

    /// Advances to the first byte that does not belong, or to the end of the input.
    private mutating func skip(while belongs: (UInt8) -> Bool) {
        var place = position
        while place < end, belongs(bytes[place]) { place += 1 }
        position = place
    }

    /// Field values are most of a head: this skips 8 bytes at a time as long as there is no control character among
    /// them.
    private mutating func skipPlainWords() {
        var place = position
        while place + 8 <= end {
            let plain = Self.plainBytes(of: bytes.loadUnaligned(fromByteOffset: place, as: UInt64.self))
            place += plain
            guard plain == 8 else { break }
        }
        position = place
    }

    /// How many of 8 bytes precede the first that is below 0x20 or equal to 0x7F. For each byte that is, a subtraction
    /// sets the highest bit, which was not set before ("hasless" and "haszero" of S. E. Anderson's Bit Twiddling
    /// Hacks); what it borrows changes only bytes behind it.
    @inline(__always)
    private static func plainBytes(of word: UInt64) -> Int {
        let word = UInt64(littleEndian: word), ones: UInt64 = 0x0101_0101_0101_0101
        let delete = word ^ (ones &* 0x7F)
        let isControl = (word &- ones &* 0x20) & ~word
        let isDelete = (delete &- ones) & ~delete
        return ((isControl | isDelete) & (ones &* 0x80)).trailingZeroBitCount / 8
    }

    private func isAtLineEnd() throws(Stop) -> Bool {
        let byte = try next()
        return byte == ASCII.carriageReturn || byte == ASCII.lineFeed
    }

    /// CR LF, or LF alone (RFC 9112 §2.2); a CR alone is neither.
    private mutating func takeLineEnd() throws(Stop) {
        if position + 1 < end, bytes[position] == ASCII.carriageReturn, bytes[position + 1] == ASCII.lineFeed {
            position += 2
            return
        }
        if try next() == ASCII.carriageReturn { position += 1 }
        guard try next() == ASCII.lineFeed else { throw .fault(.bareCarriageReturn) }
        position += 1
    }

    private func span(_ range: Range<Int>) -> RequestHead.ByteSpan {
        RequestHead.ByteSpan(range.lowerBound - start..<range.upperBound - start)
    }
}
