import DiskCache
import Foundation
import Synchronization
import Testing
import TestSupport

@testable import ControlAPI
@testable import Reelcache

/// Lists of segments, written while they are sent.
@Suite struct SegmentListingTests {
    private typealias SegmentListing = ResourceRoutes.SegmentListing

    private static func report(_ number: Int) -> SegmentReport {
        SegmentReport(
            number: Int64(number), url: "https://example.org/\(number).ts?token=\(number)", range: nil, duration: 2,
            cached: 0, isCached: false)
    }

    @Test func piecesAreSmallAndTogetherTheWholeLine() throws {
        let counts = [1000, 0, 256, 3], made = Mutex<[Int]>([])
        // Of every seventh there is nothing to tell, and of none in the last list.
        let lists: [SegmentListing.List] = counts.enumerated().map { index, count in
            (
                count,
                { range in
                    made.withLock { $0.append(range.count) }
                    return range.filter { !$0.isMultiple(of: 7) && index < 3 }.map(Self.report)
                }
            )
        }
        let empty = counts.indices.map { "{\"name\":\"\\\"segment_list\\\":[]\",\"segment_list\":[],\"n\":\($0)}" }
        let listing = SegmentListing(Array("[\(empty.joined(separator: ","))]\n".utf8), lists: lists, .standard)
        var (whole, longest) = ([UInt8](), 0)
        while let piece = try listing.next() {
            whole += piece
            longest = max(longest, piece.count)
        }
        let full = try zip(empty, lists).enumerated().map { index, one in
            let all = (0..<one.1.count).filter { !$0.isMultiple(of: 7) && index < 3 }.map(Self.report)
            let line = String(decoding: try ControlJSON.line(all, masked: .standard).dropLast(), as: UTF8.self)
            return one.0.replacingOccurrences(of: ",\"segment_list\":[]", with: ",\"segment_list\":" + line)
        }
        #expect(String(decoding: whole, as: UTF8.self) == "[\(full.joined(separator: ","))]\n")
        #expect(longest < 32 << 10 && made.withLock { $0.max() ?? 0 } == SegmentListing.pieceCount)
    }
}
