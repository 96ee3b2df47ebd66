import CachePolicy
import Foundation
import HTTPModel

/// Reads an archive that arrives in pieces of any size. It believes nothing: every number is within its bounds, every
/// checksum is compared before anything is delivered, and memory holds what has come, one head or chunk at most.
package final class ArchiveReader {
    enum Event {
        /// - Parameter head: its values are checked.
        case resource(ArchivedResource)
        /// A chunk of the resource, whole and verified, each once and in order.
        /// - Parameters:
        ///   - number: among the chunks of the resource.
        ///   - lastAccess: of its extent, in microseconds since 1970.
        case chunk(number: Int, lastAccess: Int64, UnsafeRawBufferPointer)
        /// All of the resource has come.
        case endOfResource
        /// All of the archive has come.
        case end
    }

    /// What the next bytes are.
    private enum Expected {
        case magic
        case block
        case headLength
        case head(count: Int)
        case chunksHead
        case checksums(Piece, head: [UInt8])
        case chunk(Piece)
        case endOfResource
        case end
        case nothing
    }

    /// The rest of a block of chunks.
    private struct Piece {
        let ordinal: Int
        let bits: Presence
        let lastAccess: Int64
        /// Of the chunks that are left, in order.
        var left: ArraySlice<(number: Int, checksum: UInt64)> = []
    }

    private var expected = Expected.magic
    /// The beginning of what is expected, if it has not come as a whole.
    private var rest: [UInt8] = []
    /// Where what is expected begins in the archive.
    private var offset: Int64 = 0
    private var resource: ArchivedResource?
    private var nextChunk = 0
    private var tally = ArchiveTally()
    private let now: Int64

    /// - Parameter now: microseconds since 1970.
    package init(now: Int64) { self.now = now }

    /// Where the resource in which the archive is at the moment was found; nil between resources.
    private var place: String? { resource?.key.text }

    /// - Parameter deliver: its errors end the reading.
    func append(
        _ bytes: UnsafeRawBufferPointer, _ deliver: (Event) throws(ArchiveError) -> Void
    ) throws(ArchiveError) {
        var left = bytes[...]
        while !left.isEmpty {
            let count = byteCount
            guard rest.isEmpty, left.count >= count, count > 0 else {
                let more = left.prefix(max(0, count - rest.count))
                rest.append(contentsOf: more)
                left = left[more.endIndex...]
                try checkBeginning(isMore: !left.isEmpty)
                guard rest.count == count, count > 0 else { continue }
                let whole = rest
                rest.removeAll(keepingCapacity: true)
                let taken = whole.withUnsafeBytes { bytes in
                    Result { () throws(ArchiveError) in try take(bytes, deliver) }
                }
                try taken.get()
                offset +|= Int64(count)
                continue
            }
            try take(UnsafeRawBufferPointer(rebasing: left.prefix(count)), deliver)
            left = left.dropFirst(count)
            offset +|= Int64(count)
        }
    }

    /// The input has ended.
    package func finish() throws(ArchiveError) {
        switch expected {
        case .nothing: return
        case .magic where offset == 0: throw .notAnArchive
        default: throw .cut(resource: place, offset: offset +| Int64(rest.count))
        }
    }

    /// Recognizes what is no archive from its first bytes, and what follows its end.
    private func checkBeginning(isMore: Bool) throws(ArchiveError) {
        switch expected {
        case .magic where !rest.starts(with: ArchiveFormat.name.prefix(rest.count)): throw .notAnArchive
        case .nothing where isMore: throw damage("something follows its end")
        default: break
        }
    }

    private var byteCount: Int {
        switch expected {
        case .magic: ArchiveFormat.magic.count
        case .block: 1
        case .headLength: 4
        case .head(let count): count + 8
        case .chunksHead: ArchiveFormat.chunksHeadBytes
        case .checksums(let piece, _): 8 * piece.bits.count + 8
        case .chunk(let piece): size(of: piece)
        case .endOfResource: 16
        case .end: 24
        case .nothing: 0
        }
    }

    private func size(of piece: Piece) -> Int {
        guard let resource, let next = piece.left.first else { return 0 }
        return resource.geometry.chunkBytes(next.number, length: resource.length).count
    }

    private func damage(_ reason: String) -> ArchiveError { .damaged(reason, resource: place, offset: offset) }

    private func take(_ bytes: UnsafeRawBufferPointer, _ deliver: (Event) throws(ArchiveError) -> Void)
        throws(ArchiveError)
    {
        switch expected {
        case .magic: try takeMagic(bytes)
        case .block: try takeBlock(bytes[0])
        case .headLength: try takeHeadLength(bytes.number(at: 0))
        case .head: try deliver(takeHead(bytes))
        case .chunksHead: try takeChunksHead(bytes)
        case .checksums(let piece, let head): try takeChecksums(bytes, piece, head)
        case .chunk(let piece): try takeChunk(bytes, piece, deliver)
        case .endOfResource: try deliver(takeEndOfResource(bytes))
        case .end: try deliver(takeEnd(bytes))
        case .nothing: break
        }
    }

    private func takeMagic(_ bytes: UnsafeRawBufferPointer) throws(ArchiveError) {
        guard bytes.starts(with: ArchiveFormat.name) else { throw .notAnArchive }
        guard bytes.elementsEqual(ArchiveFormat.magic) else { throw .laterVersion }
        expected = .block
    }

    private func takeBlock(_ byte: UInt8) throws(ArchiveError) {
        switch (ArchiveFormat.Block(rawValue: byte), resource == nil) {
        case (.resource, true): expected = .headLength
        case (.chunks, false): expected = .chunksHead
        case (.endOfResource, false): expected = .endOfResource
        case (.end, true): expected = .end
        default: throw damage("there is no block where one has to begin")
        }
    }

    private func takeHeadLength(_ length: UInt32) throws(ArchiveError) {
        guard 1...ArchiveFormat.longestHead ~= Int(length) else { throw damage("a head of \(length) bytes") }
        expected = .head(count: Int(length))
    }

    private func takeHead(_ bytes: UnsafeRawBufferPointer) throws(ArchiveError) -> Event {
        let text = UnsafeRawBufferPointer(rebasing: bytes.dropLast(8))
        guard ChunkDigest.of(text) == bytes.number(at: text.count) else { throw damage("the checksum of a head") }
        guard let head = try? ArchiveHead(line: text) else { throw damage("a head that is not the expected JSON") }
        let checked: ArchivedResource
        do throws(ArchiveHeadDamage) { checked = try head.checked(now: now) } catch {
            throw .damaged("\(error) cannot be right", resource: head.url.beginning(500), offset: offset)
        }
        tally.begin(text)
        (resource, nextChunk, expected) = (checked, 0, .block)
        return .resource(checked)
    }

    private func takeChunksHead(_ bytes: UnsafeRawBufferPointer) throws(ArchiveError) {
        guard let resource else { return }
        let ordinal: UInt32 = bytes.number(at: 0), bits: UInt64 = bytes.number(at: 4)
        let time = Int64(bitPattern: bytes.number(at: 12))
        let piece = Piece(
            ordinal: Int(ordinal), bits: Presence(bits: bits), lastAccess: min(max(0, time), now))
        guard piece.ordinal < resource.geometry.extentCount(length: resource.length), bits != 0,
            resource.geometry.existing(piece.bits, inExtent: piece.ordinal, length: resource.length) == piece.bits
        else { throw damage("chunks that the resource does not have") }
        guard piece.ordinal * ChunkGeometry.chunksPerExtent + piece.bits.runOfAbsent(from: 0) >= nextChunk else {
            throw damage("chunks out of order")
        }
        expected = .checksums(piece, head: Array(bytes))
    }

    private func takeChecksums(_ bytes: UnsafeRawBufferPointer, _ piece: Piece, _ head: [UInt8]) throws(ArchiveError) {
        var piece = piece
        let whole = head + bytes.dropLast(8), first = piece.ordinal * ChunkGeometry.chunksPerExtent
        guard whole.withUnsafeBytes({ ChunkDigest.of($0) }) == bytes.number(at: bytes.count - 8) else {
            throw damage("the checksum of a block of chunks")
        }
        let numbers = piece.bits.runs.joined().map { first + $0 }
        piece.left = numbers.enumerated().map { ($1, bytes.number(at: 8 * $0)) }[...]
        nextChunk = (numbers.last ?? 0) + 1
        whole.withUnsafeBytes { tally.add($0) }
        expected = .chunk(piece)
    }

    private func takeChunk(
        _ bytes: UnsafeRawBufferPointer, _ piece: Piece, _ deliver: (Event) throws(ArchiveError) -> Void
    ) throws(ArchiveError) {
        var piece = piece
        guard let chunk = piece.left.popFirst() else { return }
        guard ChunkDigest.of(bytes) == chunk.checksum else { throw damage("the checksum of a chunk") }
        tally.count(Int64(bytes.count))
        expected = piece.left.isEmpty ? .block : .chunk(piece)
        try deliver(.chunk(number: chunk.number, lastAccess: piece.lastAccess, bytes))
    }

    private func takeEndOfResource(_ bytes: UnsafeRawBufferPointer) throws(ArchiveError) -> Event {
        guard bytes.elementsEqual(tally.endOfResource()) else { throw damage("the sums of a resource") }
        (resource, expected) = (nil, .block)
        return .endOfResource
    }

    private func takeEnd(_ bytes: UnsafeRawBufferPointer) throws(ArchiveError) -> Event {
        guard bytes.elementsEqual(tally.end) else { throw damage("the sums of the archive") }
        expected = .nothing
        return .end
    }
}

/// What the ends of resources and of an archive say: how much there was, and checksums. For writing and for reading.
struct ArchiveTally {
    private var resources: UInt64 = 0
    private var bytes: UInt64 = 0
    private var ofResource: UInt64 = 0
    /// A chain: the checksum of the former value and of what was added.
    private var chain: UInt64 = 0

    /// A resource begins.
    mutating func begin(_ head: UnsafeRawBufferPointer) {
        (chain, ofResource) = (0, 0)
        add(head)
    }

    /// A head comes: of the resource, or of a block of chunks with their checksums.
    mutating func add(_ head: UnsafeRawBufferPointer) {
        let link = chain.bytes + ChunkDigest.of(head).bytes
        chain = link.withUnsafeBytes { ChunkDigest.of($0) }
    }

    /// Counts the bytes of chunks.
    mutating func count(_ count: Int64) { ofResource = ofResource &+ UInt64(max(0, count)) } // no trap: not below 0

    /// The body of the block that ends the resource: the number of its bytes, and the digest.
    mutating func endOfResource() -> [UInt8] {
        resources = resources &+ 1
        bytes = bytes &+ ofResource
        return ofResource.bytes + chain.bytes
    }

    /// The body of the block that ends the archive: resources, bytes, checksum.
    var end: [UInt8] {
        let counts = resources.bytes + bytes.bytes
        return counts + counts.withUnsafeBytes { ChunkDigest.of($0) }.bytes
    }
}

extension UnsafeRawBufferPointer {
    /// A little-endian number.
    fileprivate func number<Number: FixedWidthInteger>(at offset: Int) -> Number {
        Number(littleEndian: loadUnaligned(fromByteOffset: offset, as: Number.self))
    }
}

extension FixedWidthInteger {
    /// Little-endian.
    var bytes: [UInt8] { withUnsafeBytes(of: littleEndian) { Array($0) } }
}
