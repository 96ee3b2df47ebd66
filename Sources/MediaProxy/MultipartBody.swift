import CacheFill
import DiskCache
import HTTPModel
import HTTPTransport

/// The layout of several ranges of a generation in one body, `multipart/byteranges` (RFC 9110 §14.6, RFC 2046
/// §5.1.1).
///
///     --BOUNDARY CRLF Content-Type, Content-Range CRLF CRLF  bytes
///     CRLF --BOUNDARY CRLF ...                               bytes
///     CRLF --BOUNDARY-- CRLF
struct MultipartLayout {
    let ranges: [Range<Int64>]
    private let total: Int64
    private let partType: String?
    /// 128 random bits: they do not occur in the media, and cannot be guessed and planted there.
    private let boundary: String

    /// - Parameters:
    ///   - total: the length of the whole.
    ///   - type: the whole's `Content-Type`; nil if it has none.
    init(_ ranges: [Range<Int64>], total: Int64, type: String?) {
        self.ranges = ranges
        self.total = total
        partType = type
        boundary = (0..<2).map { _ in
            let digits = String(UInt64.random(in: 0 ... .max), radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }.joined()
    }

    var contentType: String { "multipart/byteranges; boundary=\(boundary)" }

    /// The exact length of the body, in bytes.
    var length: Int64 {
        // no trap: the ranges were joined, and lie within one representation
        ranges.indices.reduce(Int64(closing.count)) { $0 + Int64(opening(of: $1).count) + Int64(ranges[$1].count) }
    }

    /// The bytes before a part's content.
    func opening(of part: Int) -> [UInt8] {
        // RFC 9110 §15.3.7.2: the type of the whole, if it has one.
        let type = partType.map { "Content-Type: \($0)\r\n" } ?? ""
        let range = ContentRange(range: ranges[part], total: total).fieldValue
        return Array("\(part == 0 ? "" : "\r\n")--\(boundary)\r\n\(type)Content-Range: \(range)\r\n\r\n".utf8)
    }

    var closing: [UInt8] { Array("\r\n--\(boundary)--\r\n".utf8) }
}

/// The body of an answer with several ranges: one part after the other, each read as a separate range. Loop-bound.
final class MultipartBody: BodySource {
    private let layout: MultipartLayout
    private let exchange: Exchange
    private let readerOfPart: (Range<Int64>) -> CacheReader
    private let onNext: (CacheReader) -> Void
    private let onEnd: (Bool) -> Void
    private var part = 0
    private var reader: CacheReader
    /// The reader's step that waits until the part's opening has been sent.
    private var held: CacheReader.Step?
    private var framing: BytesSource?
    private var isClosing = false

    /// - Parameters:
    ///   - reader: reads the first range.
    ///   - step: its first step, taken before the header was sent.
    ///   - readerOfPart: makes the readers of the other ranges.
    ///   - onNext: called with each further reader when the bytes of the former are counted.
    ///   - onEnd: called with whether all parts were sent.
    init(
        _ layout: MultipartLayout, _ exchange: Exchange, first reader: CacheReader, _ step: CacheReader.Step,
        readerOfPart: @escaping (Range<Int64>) -> CacheReader, onNext: @escaping (CacheReader) -> Void,
        onEnd: @escaping (_ isWhole: Bool) -> Void
    ) {
        self.layout = layout
        self.exchange = exchange
        self.reader = reader
        self.readerOfPart = readerOfPart
        (self.onNext, self.onEnd) = (onNext, onEnd)
        held = step
        framing = BytesSource(layout.opening(of: 0))
    }

    func next(limit: Int) -> BodyStep {
        if let framing {
            if case .span(let span) = framing.next(limit: limit) { return .span(span) }
            self.framing = nil
        }
        if isClosing { return .end }
        switch takeStep(limit) {
        case .bytes(let bytes, let descriptor, let offset):
            return .span(BodySpan(bytes: bytes, file: descriptor.map { ($0, offset) }))
        case .wait: return .wait
        case .failed: return .cut
        case .end:
            proceed(limit)
            return next(limit: limit)
        }
    }

    private func takeStep(_ limit: Int) -> CacheReader.Step {
        let step = held ?? reader.next(limit: limit)
        held = nil
        if case .wait = step { reader.onReady = { [exchange] in exchange.resume() } }
        return step
    }

    /// Continues with the next part, or with the closing, after a part has been sent.
    private func proceed(_ limit: Int) {
        part += 1
        guard part < layout.ranges.count else {
            isClosing = true
            framing = BytesSource(layout.closing)
            return
        }
        framing = BytesSource(layout.opening(of: part))
        let next = readerOfPart(layout.ranges[part])
        // The next reader joins the fetch of its bytes before the previous one leaves, so that the fetch is not
        // abandoned in between.
        let step = next.next(limit: limit)
        if case .wait = step {} else { held = step }
        exchange.note(reader)
        reader.finish()
        reader = next
        onNext(next)
    }

    func takeBack(_ count: Int) -> Bool { reader.rewind(by: count) }

    func finish() {
        exchange.note(reader)
        reader.finish()
        onEnd(isClosing)
    }
}
