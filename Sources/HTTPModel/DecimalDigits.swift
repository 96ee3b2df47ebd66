import Glibc

extension [UInt8] {
    package mutating func append(_ text: StaticString) {
        append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    /// Appends the digits of a number, without an intermediate string.
    /// - Parameter number: not negative.
    package mutating func append(decimal number: Int64) { append(upTo: 20) { $0.append(decimal: number) } }

    package mutating func append(decimal number: UInt64) { append(upTo: 20) { $0.append(decimal: number) } }

    /// Appends several pieces at the cost of one: the array looks once whether it has room, not for each.
    /// - Parameter most: the most bytes that are written.
    package mutating func append(upTo most: Int, _ write: (inout LineWriter) -> Void) {
        append(addingCapacity: most) { span in
            span.withUnsafeMutableBufferPointer { room, count in
                var line = LineWriter(room, count)
                write(&line)
                count = line.count
            }
        }
    }
}

extension String {
    /// Puts a text together from pieces in one go.
    /// - Parameter most: the most bytes that are written.
    package init(upTo most: Int, _ write: (inout LineWriter) -> Void) {
        self.init(unsafeUninitializedCapacity: most) { room in
            var line = LineWriter(room, 0)
            write(&line)
            return line.count
        }
    }
}

/// Writes pieces of text into room that is known to be enough.
package struct LineWriter {
    private let room: UnsafeMutableBufferPointer<UInt8>
    fileprivate private(set) var count: Int

    fileprivate init(_ room: UnsafeMutableBufferPointer<UInt8>, _ count: Int) {
        (self.room, self.count) = (room, count)
    }

    package mutating func append(_ text: StaticString) {
        append(bytes: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    package mutating func append(text: String) {
        var text = text
        text.withUTF8 { append(bytes: $0) }
    }

    package mutating func append(_ bytes: [UInt8]) { bytes.withUnsafeBufferPointer { append(bytes: $0) } }

    private mutating func append(bytes text: UnsafeBufferPointer<UInt8>) {
        precondition(text.count <= room.count - count, "a line is longer than announced")
        guard let start = text.baseAddress, !text.isEmpty else { return }
        memcpy(room.baseAddress! + count, start, text.count)
        count += text.count
    }

    /// - Parameter number: not negative.
    package mutating func append(decimal number: Int64) {
        precondition(number >= 0)
        append(decimal: number.magnitude)
    }

    package mutating func append(decimal number: UInt64) {
        var rest = number, digits = 1
        while rest >= 10 {
            rest /= 10
            digits += 1
        }
        precondition(digits <= room.count - count, "a line is longer than announced")
        var (left, place) = (number, count + digits)
        while place > count {
            place -= 1
            room[place] = UInt8(ascii: "0") + UInt8(left % 10) // no trap: a digit
            left /= 10
        }
        count += digits
    }
}
