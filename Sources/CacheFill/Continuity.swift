/// Shows that an answer continues a body without a strong validator: it repeats the body's last bytes.
///
///     received  ▓▓▓▓▓▓▓▓▓▓▓▓▓▓[ tail ]│
///     answer                  [ same ]│░░░░░░░░░░░
///
/// The tail is kept in memory, so that nothing has to be read from the disk.
struct Continuity {
    /// The last bytes that were written.
    private var tail: [UInt8] = []
    /// How many bytes of the tail the current answer has repeated.
    private var compared = 0

    /// The most bytes that are compared.
    static let longest = 64 << 10
    /// Fewer bytes than this prove nothing: other versions of a file begin alike.
    static let shortest = 1 << 10

    /// How many bytes an answer has to repeat; 0 if too few have been received to tell.
    var length: Int64 { tail.count >= Self.shortest ? Int64(min(tail.count, Self.longest)) : 0 }

    /// Takes bytes that were written.
    mutating func note(_ bytes: UnsafeRawBufferPointer) {
        if bytes.count >= Self.longest {
            tail = Array(bytes.suffix(Self.longest))
            return
        }
        tail += bytes
        // Not with each call, as that would move the tail each time.
        if tail.count >= 2 * Self.longest { tail.removeFirst(tail.count - Self.longest) } // no trap: compared
    }

    /// An answer begins that repeats the last `length` bytes.
    mutating func beginComparing() {
        tail = Array(tail.suffix(Self.longest))
        compared = 0
    }

    /// Compares the next bytes that the answer repeats.
    /// - Returns: whether they are the same.
    mutating func continues(with bytes: UnsafeRawBufferPointer) -> Bool {
        guard !bytes.isEmpty, length > 0, compared < tail.count else { return true }
        let expected = tail[compared...].prefix(bytes.count)
        compared += expected.count // no trap: within the tail
        return bytes.count == expected.count && bytes.elementsEqual(expected)
    }
}
