import CachePolicy
import TestSupport
import Testing

@Suite struct ChunkGeometryTests {
    private static let sizes: [Int64] = (12...24).map { 1 << $0 }
    private static let geometries = sizes.compactMap { ChunkGeometry(chunkSize: $0) }

    @Test func powersOfTwoFrom4KiBTo16MiBAreSizes() {
        #expect(Self.geometries.map(\.chunkSize) == Self.sizes)
        for size in [0, -4096, .min, .max, 1, 2048, 4095, 4097, 65535, 65537, 98304, 33_554_432] as [Int64] {
            #expect(ChunkGeometry(chunkSize: size) == nil, "\(size)")
        }
    }

    @Test func standardChunkIs64KiBAndItsExtent4MiB() {
        #expect(ChunkGeometry.standard.chunkSize == 65536)
        #expect(ChunkGeometry.standard.extentSize == 4_194_304)
        #expect(ChunkGeometry.standard == ChunkGeometry(chunkSize: 65536))
    }

    @Test(
        arguments: [
            (0, 0, 0, 0), (65535, 0, 0, 0), (65536, 1, 0, 1), (4_194_303, 63, 0, 63), (4_194_304, 64, 1, 0),
            (4_294_967_295, 65535, 1023, 63),
            (4_294_967_296, 65536, 1024, 0), (1 << 40, 1 << 24, 1 << 18, 0),
        ] as [(Int64, Int, Int, Int)])
    func offsetLiesInItsChunkAndExtent(offset: Int64, chunk: Int, extent: Int, bit: Int) {
        let geometry = ChunkGeometry.standard
        #expect(geometry.chunk(at: offset) == chunk)
        #expect(geometry.extent(at: offset) == extent)
        #expect(geometry.extent(ofChunk: chunk) == extent)
        #expect(geometry.bit(ofChunk: chunk) == bit)
    }

    @Test(
        arguments: [
            (0..<0, 0..<0), (0..<1, 0..<1), (0..<65536, 0..<1), (0..<65537, 0..<2), (65535..<65537, 0..<2),
            (65536..<65536, 1..<1),
            (100_000..<200_000, 1..<4), (0..<Int64.max, 0..<Int(Int64.max >> 16) + 1),
        ] as [(Range<Int64>, Range<Int>)])
    func rangeTouchesItsChunks(range: Range<Int64>, chunks: Range<Int>) {
        #expect(ChunkGeometry.standard.chunks(touching: range) == chunks)
    }

    @Test(
        arguments: [
            (1..<2, nil, 0..<65536), (65536..<65537, nil, 65536..<131_072), (1..<2, 100, 0..<100),
            (70000..<80000, 100_000, 65536..<100_000),
            (70000..<80000, 131_072, 65536..<131_072), (5..<5, nil, 0..<0), (0..<Int64.max, nil, 0..<Int64.max),
            (200_000..<300_000, 100_000, 100_000..<100_000),
        ] as [(Range<Int64>, Int64?, Range<Int64>)])
    func rangeIsRoundedOut(range: Range<Int64>, length: Int64?, rounded: Range<Int64>) {
        #expect(ChunkGeometry.standard.roundedOut(range, length: length) == rounded)
    }

    @Test(
        arguments: [
            (0, 0, 0), (1, 1, 1), (65536, 1, 1), (65537, 2, 1), (4_194_304, 64, 1), (4_194_305, 65, 2),
            (1 << 40, 1 << 24, 1 << 18),
        ] as [(Int64, Int, Int)])
    func lengthHasItsChunksAndExtents(length: Int64, chunks: Int, extents: Int) {
        #expect(ChunkGeometry.standard.chunkCount(length: length) == chunks)
        #expect(ChunkGeometry.standard.extentCount(length: length) == extents)
    }

    @Test func lastChunkIsShortAndThoseBeyondItAreEmpty() {
        let geometry = ChunkGeometry.standard
        #expect(geometry.chunkBytes(1, length: 65546) == 65536..<65546)
        #expect(geometry.chunkBytes(1, length: nil) == 65536..<131_072)
        #expect(geometry.chunkBytes(2, length: 65546).isEmpty)
        #expect(geometry.chunkCount(inExtent: 0, length: 65546) == 2)
        #expect(geometry.chunkCount(inExtent: 1, length: 65546) == 0)
        #expect(geometry.chunkCount(inExtent: 7, length: nil) == 64)
    }

    @Test func ordinalsBeyondTheLastOffsetStartAtItInsteadOfOverflowing() {
        for geometry in Self.geometries {
            let last = geometry.chunk(at: .max)
            #expect(geometry.chunkStart(last) <= Int64.max)
            #expect(geometry.chunkBytes(last, length: nil) == geometry.chunkStart(last)..<Int64.max)
            #expect(geometry.chunkStart(last + 1) == .max)
            #expect(geometry.chunkStart(.max) == .max)
            #expect(geometry.extentStart(.max) == .max)
        }
    }

    // MARK: - Properties

    @Test func everyOffsetIsInTheBytesOfItsChunk() {
        var random = SplitMix64.forTest("offsets")
        for _ in 0..<5000 {
            let geometry = Self.geometries.randomElement(using: &random)!
            let length = Self.length(&random) + 1
            let offset = Int64.random(in: 0..<length, using: &random)
            let chunk = geometry.chunk(at: offset)
            let extent = geometry.extent(at: offset)
            #expect(geometry.chunkBytes(chunk, length: length).contains(offset))
            #expect(geometry.chunkStart(chunk) == offset / geometry.chunkSize * geometry.chunkSize)
            #expect(geometry.extentStart(extent) == offset / geometry.extentSize * geometry.extentSize)
            #expect(extent * ChunkGeometry.chunksPerExtent + geometry.bit(ofChunk: chunk) == chunk)
            #expect(chunk < geometry.chunkCount(length: length) && extent < geometry.extentCount(length: length))
        }
    }

    @Test func roundingOutIsTheUnionOfTheChunksThatAreTouched() {
        var random = SplitMix64.forTest("roundingOut")
        for _ in 0..<5000 {
            let geometry = Self.geometries.randomElement(using: &random)!
            let length = Self.length(&random) + 1
            let lower = Int64.random(in: 0..<length, using: &random)
            let upper = min(length, lower + 1 + Int64.random(in: 0...(10 * geometry.chunkSize), using: &random))
            let chunks = geometry.chunks(touching: lower..<upper)
            let rounded = geometry.roundedOut(lower..<upper, length: length)
            #expect(rounded.lowerBound == geometry.chunkBytes(chunks.first!, length: length).lowerBound)
            #expect(rounded.upperBound == geometry.chunkBytes(chunks.last!, length: length).upperBound)
            #expect(rounded.clamped(to: lower..<upper) == lower..<upper)
            #expect(geometry.roundedOut(rounded, length: length) == rounded)
            #expect(geometry.chunks(touching: rounded) == chunks)
        }
    }

    @Test func chunksOfAllExtentsTileTheLength() {
        var random = SplitMix64.forTest("tiling")
        let geometry = ChunkGeometry(chunkSize: 4096)!
        for _ in 0..<200 {
            let length = Int64.random(in: 0...3_000_000, using: &random)
            let counts = (0..<geometry.extentCount(length: length)).map {
                geometry.chunkCount(inExtent: $0, length: length)
            }
            #expect(counts.allSatisfy { 1...64 ~= $0 } && counts.dropLast().allSatisfy { $0 == 64 })
            let chunks = 0..<counts.reduce(0, +)
            #expect(chunks.count == geometry.chunkCount(length: length))
            var end: Int64 = 0
            for bytes in chunks.map({ geometry.chunkBytes($0, length: length) }) {
                #expect(bytes.lowerBound == end && !bytes.isEmpty)
                end = bytes.upperBound
            }
            #expect(end == length)
        }
    }

    /// Of every order of magnitude, up to 2⁴⁸.
    private static func length(_ random: inout SplitMix64) -> Int64 {
        .random(in: 0..<(1 << Int64.random(in: 1...48, using: &random)), using: &random)
    }
}
