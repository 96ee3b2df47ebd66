import Glibc

/// The beginnings of request lines, up to the space after the target, that were read before: one that comes again is
/// compared, not parsed, and what was found for its target is at hand. Loop-bound.
///
/// A line has two places, by a hash of its bytes. The one that was not used last makes way for another: what others
/// send costs a line its place at most, never time.
package final class RequestLines {
    package final class Line {
        fileprivate let bytes: [UInt8]
        let method: RequestMethod
        let target: String
        /// Its last head, with fields that are shared anyway.
        private var lastHead: RequestHead?
        private var note: AnyObject?

        fileprivate init(_ bytes: UnsafeRawBufferPointer, _ method: RequestMethod, _ target: String) {
            (self.bytes, self.method, self.target) = ([UInt8](bytes), method, target)
        }

        var length: Int { bytes.count }

        /// What whoever answers has found for the target.
        package var found: AnyObject? {
            get { note }
            set { note = newValue }
        }

        func head(with rest: RequestHead.Rest) -> RequestHead? {
            if let lastHead, lastHead.rest === rest { lastHead } else { nil }
        }

        /// - Returns: how much more it weighs.
        fileprivate func keep(_ head: RequestHead?) -> Int {
            let before = weight
            lastHead = head
            return weight - before // no trap: of heads that were read
        }

        fileprivate func begins(_ input: UnsafeRawBufferPointer) -> Bool {
            bytes.withUnsafeBytes {
                input.count >= $0.count && memcmp($0.baseAddress!, input.baseAddress!, $0.count) == 0
            }
        }

        /// In bytes.
        fileprivate var weight: Int { bytes.count + (lastHead.map(Self.weight) ?? 0) }

        /// As if no other head shared its fields.
        fileprivate static func weight(of head: RequestHead) -> Int {
            head.rest.bytes.count + 32 * head.rest.fieldSpans.count
        }
    }

    /// In pairs.
    private var places: [Line?] = Array(repeating: nil, count: most)
    /// The last place of each pair that was used.
    private var lastUsed = [UInt8](repeating: 0, count: most / 2)
    /// The line of the head that was parsed last, if it is remembered.
    private var current: Line?
    /// What all weigh at most, and which of them is forgotten next.
    private var bytes = 0, hand = 0

    private static let most = 8192
    /// Of a line that is remembered, in bytes.
    private static let (shortest, longest) = (8, 4096)
    /// In bytes: a route takes up to twelve times as much as its line, and some 500 bytes.
    static let capacity = 512 << 10

    package init() {}

    /// The line of the head that was parsed last, if it is remembered.
    package var last: Line? { current }

    func forgetLast() { current = nil }

    /// The known line that the input begins with.
    func line(beginning input: UnsafeRawBufferPointer) -> Line? {
        guard let count = Self.count(beginning: input) else { return nil }
        let pair = Self.pair(of: UnsafeRawBufferPointer(rebasing: input[..<count]))
        for side in 0..<2 {
            guard let line = places[2 * pair + side], line.length == count, line.begins(input) else { continue }
            lastUsed[pair] = UInt8(side) // no trap: 0 or 1
            current = line
            return line
        }
        return nil
    }

    /// Remembers a valid line.
    func add(_ sent: UnsafeRawBufferPointer, _ method: RequestMethod, _ target: String) {
        guard sent.count >= Self.shortest, sent.count <= Self.longest else { return }
        let pair = Self.pair(of: sent)
        let side = (0..<2).first { places[2 * pair + $0] == nil } ?? 1 - Int(lastUsed[pair])
        let line = Line(sent, method, target), place = 2 * pair + side
        bytes += line.length - (places[place]?.weight ?? 0)
        (places[place], lastUsed[pair], current) = (line, UInt8(side), line) // no trap: 0 or 1
        if bytes > Self.capacity { shrink() }
    }

    /// Keeps the last head with a line.
    func keep(_ head: RequestHead, of line: Line) {
        bytes += line.keep(head)
        if bytes > Self.capacity { shrink() }
    }

    /// What all weigh, in bytes.
    var weight: Int { places.reduce(0) { $0 + ($1?.weight ?? 0) } }

    /// Forgets in turn until all weigh less: heads first, which are made again sooner than routes are found.
    private func shrink() {
        for round in 0..<2 * Self.most where bytes > Self.capacity / 4 * 3 {
            if round < Self.most {
                bytes += places[hand]?.keep(nil) ?? 0
            } else {
                bytes -= places[hand]?.weight ?? 0
                places[hand] = nil
            }
            hand = (hand + 1) % Self.most
        }
    }

    /// The length of a line: of its method, a space, its target, and a space.
    private static func count(beginning input: UnsafeRawBufferPointer) -> Int? {
        guard let start = input.baseAddress else { return nil }
        let most = min(input.count, longest)
        guard let first = memchr(start, Int32(ASCII.space), most) else { return nil }
        let used = UnsafeRawPointer(first) - start + 1
        guard let second = memchr(start + used, Int32(ASCII.space), most - used) else { return nil }
        let count = UnsafeRawPointer(second) - start + 1
        return count >= shortest ? count : nil
    }

    /// The pair of places of a line. Whoever knows how it is mixed can make others lose their places, no more.
    private static func pair(of line: UnsafeRawBufferPointer) -> Int {
        var mixed = UInt64(line.count), place = 0 // no trap: a count
        while place < line.count {
            // The last word overlaps the one before it.
            place = min(place, line.count - 8)
            mixed = (mixed ^ line.loadUnaligned(fromByteOffset: place, as: UInt64.self)) &* 0x9E37_79B9_7F4A_7C15
            mixed ^= mixed &>> 29
            place += 8
        }
        return Int(mixed &>> 32) % (most / 2) // no trap: below 2^32
    }
}
