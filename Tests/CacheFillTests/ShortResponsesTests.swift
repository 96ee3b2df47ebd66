import CachePolicy
import DiskCache
import HTTPModel
import TestSupport
import Testing

@testable import CacheFill

/// The store of what is not media: within its limit, the least recently used make room.
@Suite struct ShortResponsesTests {
    private typealias Table = ShortResponses.Table

    private static func key(_ name: String) -> CacheKey { CacheKey(text: "https://example.com/\(name)") }

    private static func response(
        _ text: String = "", of url: String = "https://example.com/", language: String? = nil
    ) -> ShortResponse {
        let variant = Variant(language.map { [Variant.Field(name: "accept-language", value: $0)] } ?? [])
        let head = GenerationHead(status: 404, fields: HeaderFields(), variant: variant, finalURL: url, storedAt: 0)
        return ShortResponse(to: url, head, Array(text.utf8))
    }

    private static let page = String(repeating: "x", count: 1000)

    private static func bodies(_ table: inout Table, _ name: String, _ kind: Table.Kind = .response)
        -> [String]
    {
        table.use(kind, key(name)).map { String(decoding: $0.body, as: UTF8.self) }
    }

    @Test func latestTakesThePlaceOfTheOneBefore() {
        var table = Table(limit: 1 << 20)
        table.insert(Self.response("one"), .response, Self.key("a"))
        let size = table.size
        table.insert(Self.response("two"), .response, Self.key("a"))
        #expect(Self.bodies(&table, "a") == ["two"] && table.count == 1 && table.size == size)
        #expect(table.takeDropped().count == 1 && table.takeDropped().isEmpty)
    }

    @Test func eachSelectionIsHeldByItselfUpToANumber() {
        var table = Table(limit: 1 << 20)
        for number in 0..<20 {
            table.insert(Self.response("\(number)", language: "\(number)"), .response, Self.key("a"))
        }
        #expect(Self.bodies(&table, "a") == (4..<20).reversed().map(String.init))
        #expect(table.count == Table.mostSelections)
    }

    @Test func limitHoldsAndTheLeastRecentlyUsedGoFirst() {
        let one = Self.response(Self.page)
        var table = Table(limit: 20 * (one.size + 100))
        for number in 0..<15 { table.insert(Self.response(Self.page), .response, Self.key("\(number)")) }
        #expect(table.count == 15)
        _ = table.use(.response, Self.key("0"))
        for number in 15..<40 {
            table.insert(Self.response(Self.page), .response, Self.key("\(number)"))
            #expect(table.size <= table.limit)
            _ = table.use(.response, Self.key("0"))
        }
        #expect(!table.use(.response, Self.key("0")).isEmpty && !table.use(.response, Self.key("39")).isEmpty)
        #expect(table.use(.response, Self.key("1")).isEmpty)
        table.limit = 2 * (one.size + 100)
        #expect(table.count == 2 && table.size <= table.limit)
        table.limit = 0
        #expect(table.count == 0 && table.size == 0)
        table.insert(one, .response, Self.key("a"))
        #expect(table.count == 0)
    }

    @Test func whatIsLargerThanTheLimitPushesNothingOut() {
        var table = Table(limit: 3000)
        table.insert(Self.response(), .response, Self.key("a"))
        table.insert(Self.response(String(repeating: "x", count: 4000)), .response, Self.key("b"))
        #expect(table.count == 1 && Self.bodies(&table, "a") == [""])
    }

    @Test func mediaEndsErrorsButNotTheRedirectsThatLeadToIt() {
        var table = Table(limit: 1 << 20)
        for kind in [Table.Kind.response, .redirect] { table.insert(Self.response("1"), kind, Self.key("a")) }
        table.remove(.response, Self.key("a"))
        #expect(table.count == 1 && table.redirects == 1 && Self.bodies(&table, "a", .redirect) == ["1"])
        table.remove(Self.key("a"))
        #expect(table.count == 0 && table.redirects == 0)
    }

    /// URLs that differ in a token share a key, but not the links that they redirect to.
    @Test func eachURLHasItsRedirect() {
        var table = Table(limit: 1 << 20)
        for token in ["1", "2"] {
            table.insert(Self.response(token, of: "https://example.com/a?t=\(token)"), .redirect, Self.key("a"))
        }
        #expect(Self.bodies(&table, "a", .redirect) == ["2", "1"])
        table.removeRedirect(of: "https://example.com/a?t=2", Self.key("a"))
        #expect(Self.bodies(&table, "a", .redirect) == ["1"])
    }

    @Test func variantsGoWithTheirKey() {
        let responses = ShortResponses(limit: 1 << 20)
        for name in ["a", "a accept=b", "ab"] {
            responses.store(Self.response(), .response, under: Self.key(name)) { true }
        }
        responses.removeAll(of: [Self.key("a")])
        #expect(
            responses.usage.count == 1
                && responses.responses(to: "https://example.com/", under: Self.key("ab")).count == 1)
        responses.removeAll()
        #expect(responses.usage == (0, 0))
    }

    @Test func whatHasChangedMeanwhileIsNotStored() {
        let responses = ShortResponses(limit: 1 << 20), resource = OpenResource(Self.key("a"))
        let mark = resource.changes
        responses.store(Self.response(), .response, under: resource.key) { resource.changes == mark }
        #expect(responses.usage.count == 1)
        resource.outdateOpening()
        responses.remove(resource.key)
        responses.store(Self.response(), .response, under: resource.key) { resource.changes == mark }
        #expect(responses.usage.count == 0)
    }

    /// Another loop removes it between that look and the storing: nothing else is stored that would have it look.
    @Test func whatIsRemovedWhileItIsBeingStoredIsNotThereAfterwards() throws {
        let responses = ShortResponses(limit: 1 << 20)
        var remover: Background<Void>?
        responses.store(Self.response(), .response, under: Self.key("a")) {
            remover = try? Background { responses.remove(Self.key("a")) }
            try? remover?.waitUntilItWaits()
            return true
        }
        try #require(remover).value()
        #expect(responses.usage.count == 0)
    }

    @Test func bodyIsCollectedUpToItsLimit() {
        let head = Self.response().head
        var intake = ShortResponse.Intake(to: "https://example.com/", head, length: 3, mark: 0)
        #expect(!intake.isComplete)
        for byte in [1, 2, 3] as [UInt8] { #expect([byte].withUnsafeBytes { intake.take($0) }) }
        #expect(intake.isComplete && intake.response.body == [1, 2, 3])
        var long = ShortResponse.Intake(to: "https://example.com/", head, length: nil, mark: 0)
        #expect([UInt8](repeating: 0, count: 65_536).withUnsafeBytes { long.take($0) } && !long.isComplete)
        #expect(![UInt8(0)].withUnsafeBytes { long.take($0) })
        #expect(ShortResponse.Intake(to: "https://example.com/", head, length: 0, mark: 0).isComplete)
    }
}
