import CacheFill
import CachePolicy
import FillTestSupport
import HTTPModel
import Presentations
import Testing
import TestSupport

/// Readings of playlists, which outlive the client that began them.
@Suite struct PlaylistLibraryTests {
    /// A demand is made from a client's connection, and that one may be gone when the reading needs something.
    @Test func aReadingKnowsWhatItWantsFromTheStart() throws {
        try FillStage.with { stage in
            let film = Media(seed: 1, size: 400_000), url = try stage.url("/film")
            stage.origin.serve("/film", film)
            #expect(try stage.prefetch(Prefetch.Order(url: url, keeps: false)).end.isCompleted)
            let generation = try #require(try stage.generation("/film"))
            let made = stage.onLoop { filler -> [Int] in
                var count = 0
                let resource = filler.filler.resource(url.cacheKey)
                let shelf = PlaylistShelf()
                let library = PlaylistLibrary(shelf, SegmentAhead(shelf), on: filler)
                func demand() -> Demand {
                    count += 1
                    return Demand(url: url, span: nil, resolvedRule: ResolvedRule())
                }
                let reader = CacheReader(
                    generation, from: 0, to: film.size, resource: resource, host: url.host, demand: demand(),
                    filler: filler)
                let before = count
                let waiter = library.read(generation, of: resource, at: url, by: reader, after: []) { _ in }
                waiter.map(library.leave)
                return [before, count]
            }
            #expect(made == [0, 1])
        }
    }
}
