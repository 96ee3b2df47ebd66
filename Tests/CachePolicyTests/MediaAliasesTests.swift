import Testing

@testable import CachePolicy

private func page(_ name: String) -> CacheKey { CacheKey(text: "https://site.example/\(name)") }

/// Pages that have the same media.
@Suite struct MediaAliasesTests {
    @Test func laterPagesShareTheKeyOfTheFirst() {
        var aliases = MediaAliases()
        let news = ["a", "b", "b"].map { aliases.learn("film", of: page($0)) }
        #expect(news == [true, true, false])
        #expect([page("a"), page("b"), page("c")].map(aliases.key(for:)) == [page("a"), page("a"), page("c")])
    }

    @Test func pageThatGetsOtherMediaIsNoAliasAnyMore() {
        var aliases = MediaAliases()
        for name in ["a", "b", "c"] { aliases.learn("film", of: page(name)) }
        aliases.learn("news", of: page("b"))
        #expect(aliases.key(for: page("b")) == page("b") && aliases.key(for: page("c")) == page("a"))
        // Under the key of the first there is something else from now on.
        aliases.learn("news", of: page("a"))
        #expect(aliases.key(for: page("a")) == page("b") && aliases.key(for: page("c")) == page("c"))
        aliases.learn("film", of: page("c"))
        #expect(aliases.key(for: page("c")) == page("c"))
    }

    @Test func whatIsStoredIsTheSameAgain() {
        var aliases = MediaAliases()
        for (name, key) in [("film", "a"), ("film", "b"), ("news", "c"), ("film", "d")] {
            aliases.learn(name, of: page(key))
        }
        #expect(MediaAliases(aliases.stored) == aliases)
        #expect(aliases.stored.map(\.name) == ["film", "news"])
    }

    /// Of what contradicts itself, the last counts.
    @Test func contradictionInAFileIsNoCircle() {
        let aliases = MediaAliases([
            .init(name: "film", key: page("a").text, aliases: [page("b").text]),
            .init(name: "news", key: page("b").text, aliases: [page("a").text]),
        ])
        #expect(aliases.key(for: page("a")) == page("b") && aliases.key(for: page("b")) == page("b"))
    }

    @Test func numberOfPagesIsBounded() {
        var aliases = MediaAliases()
        for number in 0...MediaAliases.capacity { aliases.learn("film", of: page("\(number)")) }
        #expect(aliases.stored.flatMap(\.aliases).count < MediaAliases.capacity)
        #expect(aliases.key(for: page("\(MediaAliases.capacity)")) == page("\(MediaAliases.capacity)"))
    }
}
