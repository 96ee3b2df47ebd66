import CZlib
import CachePolicy
import HTTPModel
import Playlists

/// Removes the content coding from a text that its origin encoded without being asked to (RFC 9110 §8.4.1).
package enum ContentCoding {
    /// Why a text cannot be decoded.
    package enum Problem: Error, Sendable, Equatable {
        case unknown(String)
        case broken
        case tooLong
    }

    /// The most codings of one text. Each costs a pass over it, so that a long list of them would cost any time.
    private static let mostLayers = 2

    /// How many bytes each that came may become, beside `freeBytes`: what a text may cost follows from its length. Real
    /// ones become ten to thirty times as long.
    private static let mostOfEach = 200, freeBytes = 1 << 20

    /// - Parameter limit: the maximum length of the decoded text in bytes, besides 200 for each that came and a MiB.
    /// - Throws: if a coding is neither `gzip` nor `deflate`, there are more than two, the bytes are not valid in it, or
    ///   the text is too long.
    package static func decoded(
        _ bytes: [UInt8], _ fields: HeaderFields, limit: Int = PlaylistLimits.bytes
    ) throws(Problem) -> [UInt8] {
        let codings = ContentEncoding.codings(fields)
        guard codings.count <= mostLayers else { throw .unknown(codings.joined(separator: ", ")) }
        var bytes = bytes
        let limit = min(limit, bytes.count *| mostOfEach +| freeBytes)
        for coding in codings.reversed() {
            guard ContentEncoding.isDecodable(coding) else { throw .unknown(coding) }
            bytes = try inflated(bytes, coding, limit: limit)
        }
        return bytes
    }

    /// Decodes one coding piece by piece, for bytes of any length.
    /// - Parameters:
    ///   - mostBytes: the maximum length when decoded.
    ///   - read: fills a buffer with the next bytes, and returns how many: 0 at the end.
    /// - Throws: `Problem`, and the errors of `read` and `write`.
    package static func decode(
        _ coding: String, mostBytes: Int64, read: (UnsafeMutableRawBufferPointer) throws -> Int,
        write: (UnsafeRawBufferPointer) throws -> Void
    ) throws {
        let source = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 16)
        let piece = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 16)
        defer {
            source.deallocate()
            piece.deallocate()
        }
        var (stream, result, left) = (z_stream(), Z_OK, mostBytes)
        defer { inflateEnd(&stream) }
        var isBegun = false, isFilling = false
        while case let count = try read(source), count > 0 {
            let bytes = source[..<count]
            if !isBegun {
                try begin(&stream, coding, Array(bytes.prefix(2)))
                isBegun = true
            }
            stream.next_in = source.bindMemory(to: UInt8.self).baseAddress
            stream.avail_in = UInt32(count) // no trap: 256 KiB
            repeat {
                if result == Z_STREAM_END {
                    let rest = UnsafeBufferPointer(start: stream.next_in, count: Int(stream.avail_in))
                    // RFC 1952 §2.2: members follow one another. Zeros fill some files up: gzip(1) ignores them. What
                    // precedes anything else would be a shorter text.
                    isFilling = isFilling || rest.first == 0
                    if isFilling, rest.contains(where: { $0 != 0 }) { throw Problem.broken }
                    guard !isFilling, let first = rest.first else { break }
                    guard first == gzipMember[0], inflateReset(&stream) == Z_OK else { throw Problem.broken }
                }
                stream.next_out = piece.bindMemory(to: UInt8.self).baseAddress
                stream.avail_out = UInt32(piece.count) // no trap: 256 KiB
                result = CZlib.inflate(&stream, Z_NO_FLUSH)
                guard result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR else { throw Problem.broken }
                let made = piece.count - Int(stream.avail_out)
                left -= Int64(made) // no trap: it ends below 0, by 256 KiB at most
                guard left >= 0 else { throw Problem.tooLong }
                if made > 0 { try write(UnsafeRawBufferPointer(rebasing: piece[..<made])) }
            } while stream.avail_in > 0 || stream.avail_out == 0
        }
        guard result == Z_STREAM_END else { throw Problem.broken }
    }

    private static func inflated(_ bytes: [UInt8], _ coding: String, limit: Int) throws(Problem) -> [UInt8] {
        var (rest, text) = (bytes[...], [UInt8]())
        do {
            // Memory grows with the decoded text, up to the limit.
            try decode(coding, mostBytes: Int64(limit)) { buffer in
                let piece = rest.prefix(buffer.count)
                rest = rest.dropFirst(piece.count)
                buffer.copyBytes(from: piece)
                return piece.count
            } write: {
                text += $0
            }
        } catch { throw error as? Problem ?? .broken }
        return text
    }

    /// Recognizes both of zlib's framings (RFC 1950, RFC 1952) under either name, and `deflate` without any, as some
    /// origins send it (RFC 9110 §8.4.1.2).
    private static func begin(_ stream: inout z_stream, _ coding: String, _ bytes: [UInt8]) throws(Problem) {
        let isRaw = coding == "deflate" && !bytes.starts(with: gzipMember) && !hasZlibHeader(bytes)
        let (raw, either): (Int32, Int32) = (-15, 15 + 32)
        let size = Int32(MemoryLayout<z_stream>.size)
        guard inflateInit2_(&stream, isRaw ? raw : either, ZLIB_VERSION, size) == Z_OK else { throw .broken }
    }

    /// How a member of gzip begins (RFC 1952 §2.3.1).
    private static let gzipMember: [UInt8] = [0x1F, 0x8B]

    /// RFC 1950 §2.2: the method is 8, and both bytes are a multiple of 31.
    private static func hasZlibHeader(_ bytes: [UInt8]) -> Bool {
        guard bytes.count >= 2, bytes[0] & 0xF == 8 else { return false }
        return (Int(bytes[0]) << 8 | Int(bytes[1])) % 31 == 0
    }
}
