import CacheFill
import CachePolicy
import DiskCache
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

    /// What it has put on the shelf holds for all, and is not read again. Where nothing is read at once, its thread
    /// would need the loop, which waits for it here.
    @Test(.enabled(if: TemporaryDirectory.usuallyReadsAtOnce, "this file system reads nothing at once"))
    func whatAReadingFoundHoldsThoughItsLastClientLeftMeanwhile() throws {
        try FillStage.with { stage in
            let texts = [
                "/film.m3u8": "#EXTM3U\n#EXTINF:2,\n1.ts\n#EXT-X-ENDLIST\n",
                "/main.m3u8": "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nfilm.m3u8\n",
            ]
            for (path, text) in texts {
                stage.origin.serve(path, bytes: Array(text.utf8), contentType: "application/vnd.apple.mpegurl")
                #expect(
                    try stage.prefetch(Prefetch.Order(url: stage.url(path), keeps: false)).end.isCompleted)
            }
            let shelf = PlaylistShelf(), main = try stage.url("/main.m3u8"), film = try stage.url("/film.m3u8")
            let generations = try texts.keys.sorted().map { try #require(try stage.generation($0)) }
            let isRead = Monitor(false)
            stage.onLoop { filler in
                let library = PlaylistLibrary(shelf, SegmentAhead(shelf), on: filler)
                func read(_ generation: Generation, _ url: OriginURL, then end: @escaping () -> Void)
                    -> PlaylistLibrary.Waiter?
                {
                    library.read(
                        generation, of: filler.filler.resource(url.cacheKey),
                        Demand(url: url, span: nil, resolvedRule: ResolvedRule()), follower: FollowerID(),
                        following: nil
                    ) { _ in end() }
                }
                _ = read(generations[0], film) {
                    let waiter = read(generations[1], main) { Issue.record("told though it had left") }
                    // Its thread puts it there; what it found comes to this loop afterwards.
                    _ = try? eventually("the shelf", isSo: { shelf.document(main.cacheKey) != nil })
                    waiter.map(library.leave)
                    isRead.update { $0 = true }
                }
            }
            _ = try isRead.wait(for: "the playlists") { $0 ? true : nil }
            try stage.wait(for: "the part") {
                try stage.store.parts.cached(of: main.cacheKey).map(\.key) == [film.cacheKey]
            }
        }
    }
}
