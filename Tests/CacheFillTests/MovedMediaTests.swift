import Activity
import CachePolicy
import HTTPModel
import Logging
import TestSupport
import Testing
import Upstream

@testable import CacheFill

/// When a link that was refused is left, and after which back-off.
@Suite struct MovedMediaTests {
    private static let page = try! OriginURL(url: "https://site.example/film.mp4")

    private static func media() throws -> MovedMedia {
        var rule = ResolvedRule()
        rule.refresh = MediaLocation(url: try OriginURL(url: "https://site.example/link"))
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let locations = MediaLocations(metrics: ProxyMetrics(), logger: logger, now: { 1000 }) { _, _ in }
        return MovedMedia(Demand(url: page, span: nil, resolvedRule: rule), locations)
    }

    /// The waits before each departure, after so many bytes in all.
    private static func waits(_ delivered: [Int64]) throws -> [Double?] {
        var media = try media()
        return delivered.map { bytes in
            media.worked()
            return media.leave(after: 403, isGap: true, delivered: bytes)
        }
    }

    @Test func linksThatBringLittleAreLeftLessAndLessOften() throws {
        #expect(try Self.waits([1, 2, 3, 4, 5, 6, 7, 8]) == [0, 0.25, 0.5, 1, 2, 4, 8, 8])
    }

    @Test func linkThatBringsNothingIsNotLeft() throws {
        #expect(try Self.waits([5, 5]) == [0, nil])
    }

    /// Each of these links has expired, as links do: a player would notice the wait.
    @Test func linksThatWorkedAreLeftAtOnce() throws {
        let mebibyte: Int64 = 1 << 20
        #expect(try Self.waits((1...6).map { $0 * mebibyte }) == [0, 0, 0, 0, 0, 0])
        #expect(try Self.waits([1, 2, 3, 3 + mebibyte]) == [0, 0.25, 0.5, 0])
    }
}
