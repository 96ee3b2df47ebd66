import CachePolicy
import Foundation
import HTTPModel
import TestSupport
import Testing

@testable import DiskCache

/// Archives: what one cache exports, another imports.
@Suite struct ArchiveTests {
    private let opened: OpenStore
    private var store: CacheStore { opened.store }
    private let media = Media(seed: 61, size: 600_001)

    init() throws { opened = try OpenStore() }

    // MARK: There and back

    @Test func everythingOfAResourceIsTheSameInAnotherCache() throws {
        try keep("whole", filling: 0..<media.size)
        try keep("part", filling: 8192..<40_960, 299_008..<400_000 / 4096 * 4096)
        let variant = Variant([.init(name: "accept-language", value: "de")])
        let selected = variant.variantKey(of: OpenStore.key("whole"))
        try keep(selected, head: Self.head(etag: "\"de\"", variant: variant), filling: 0..<4096)
        #expect(try store.setPinned(true, OpenStore.key("whole")))
        try store.administration.setDownloaded(OpenStore.key("part"))
        let other = try OpenStore()
        let report = try Self.take(try archive(), into: other)
        #expect(report.added == 3 && report.resources == 3)
        #expect(report.bytes == media.size + 32_768 + 98_304 / 4096 * 4096 + 4096)
        let again = try other.reopened()
        for key in [OpenStore.key("whole"), OpenStore.key("part"), selected] {
            try Self.expectSame(key, opened, again, media)
        }
        #expect(try again.store.index.pins.kept(OpenStore.key("whole")).isPinned)
        #expect(try again.store.index.pins.kept(OpenStore.key("part")).isDownloaded)
        #expect(try again.store.scrub(repairs: false) { _ in true }.isSound)
    }

    @Test func anyPresenceArrivesAsItIs() throws {
        var random = SplitMix64.forTest("archive presence")
        for number in 0..<6 {
            let size = Int64.random(in: 1...700_000, using: &random), media = Media(seed: random.next(), size: size)
            let chunks = OpenStore.small.chunkCount(length: size)
            let present = (0..<chunks).filter { _ in Int.random(in: 0..<4, using: &random) > number % 4 }
            guard !present.isEmpty else { continue }
            do {
                let generation = try opened.make("\(number)", length: size)
                for chunk in present {
                    try opened.fill(generation, media, OpenStore.small.chunkBytes(chunk, length: size))
                }
            }
            let other = try OpenStore()
            _ = try Self.take(try archive(), into: other, pieces: Int.random(in: 1...70_000, using: &random))
            let found = try #require(try other.load("\(number)"))
            #expect(found.presentChunks == present)
            #expect(try found.firstWrongChunk(media) == nil)
        }
    }

    @Test func partsBelongToTheirPresentationAndTheLastReadComesFirst() throws {
        let whole = OpenStore.key("film.m3u8")
        try keep("film.m3u8", filling: 0..<4096)
        do {
            let part = try store.makeGeneration(
                OpenStore.key("1.ts"), head: Self.head(), length: media.size, partOf: whole)
            try opened.fill(part, media, 0..<4096)
            part.touch(0, at: 5_000_000)
        }
        let other = try OpenStore()
        let bytes = try archive()
        _ = try Self.take(bytes, into: other)
        #expect(try other.store.whole(of: OpenStore.key("1.ts")) == whole)
        #expect(Self.urls(bytes) == [whole.text, OpenStore.key("1.ts").text])
        #expect(
            try other.row("1.ts").flatMap { try other.store.index.rows.presence(of: $0).first?.lastAccess } == 5_000_000
        )
    }

    @Test func whatAnotherCacheCannotUseOrMayNotBeToldIsLeftOut() throws {
        let secret = Variant([.init(name: "authorization", value: " 0123456789abcdef")])
        try keep("a", head: Self.head(variant: secret), filling: 0..<4096)
        try keep("b", filling: 0..<4096)
        #expect(Self.urls(try archive()) == [OpenStore.key("b").text])
        let export = try store.exportArchive { !String(decoding: $0, as: UTF8.self).contains("example.com/b") }
        #expect(Self.urls(try Self.bytes(export)) == [] && export.leftOut == 1)
    }

    // MARK: What is there already

    @Test func whatIsThereIsNotWrittenAgain() throws {
        try keep("a", filling: 0..<media.size)
        let bytes = try archive(), other = try OpenStore()
        #expect(try Self.take(bytes, into: other).added == 1)
        let id = try #require(try other.row("a")).id
        let second = try Self.take(bytes, into: other)
        #expect(second.present == 1 && second.imported == 0 && second.bytes == 0)
        #expect(try other.row("a")?.id == id)
    }

    @Test func aVersionThatIsThereInPartGetsWhatItLacks() throws {
        try keep("a", filling: 0..<65_536)
        let other = try OpenStore()
        do { _ = try other.make("a", media, filling: 32_768..<131_072) }
        let id = try #require(try other.load("a")).id
        let report = try Self.take(try archive(), into: other)
        #expect(report.extended == 1 && report.bytes == 32_768)
        let found = try #require(try other.reopened().load("a"))
        #expect(found.id == id && found.presentBytes(of: 0..<media.size) == 131_072)
        #expect(try found.firstWrongChunk(media) == nil)
    }

    @Test func onlyANewerVersionReplacesAndNeverPartOfOneWhatIsPinned() throws {
        let newer = Media(seed: 62, size: 50_000)
        try keep("a", newer, head: Self.head(etag: "\"v2\"", validatedAt: 1_700_000_500), filling: 0..<newer.size)
        try keep("b", newer, head: Self.head(etag: "\"v0\"", validatedAt: 1_600_000_000), filling: 0..<newer.size)
        try keep("c", newer, head: Self.head(etag: "\"v2\"", validatedAt: 1_700_000_500), filling: 0..<4096)
        let other = try OpenStore()
        do { for name in ["a", "b", "c"] { _ = try other.make(name, media, filling: 0..<media.size) } }
        #expect(try other.store.setPinned(true, OpenStore.key("c")))
        let report = try Self.take(try archive(), into: other)
        #expect(report.replaced == 1 && report.older == 1 && report.kept == 1)
        #expect(try other.load("a")?.firstWrongChunk(newer) == nil)
        for name in ["b", "c"] { #expect(try other.load(name)?.firstWrongChunk(media) == nil) }
        other.closeUnused()
        #expect(other.dataFiles.count == 3)
    }

    @Test func whatIsBeingDownloadedIsNotReplaced() throws {
        try keep("a", head: Self.head(etag: "\"v2\"", validatedAt: 1_700_000_500), filling: 0..<media.size)
        let other = try OpenStore()
        do { _ = try other.make("a", media, filling: 0..<4096) }
        let report = try Self.take(
            try archive(), into: other, options: ArchiveOptions { $0 == OpenStore.key("a") })
        #expect(report.kept == 1 && report.imported == 0)
    }

    /// Room is made for what comes, not for what is announced.
    @Test func whatIsOnlyAnnouncedEvictsNothing() throws {
        let film = Media(seed: 63, size: 6_000_000), other = try OpenStore(maxSize: 16_000_000)
        for name in ["x", "y"] { _ = try other.make(name, film, filling: 0..<film.size) }
        try keep("a", filling: 0..<4096)
        let line = try #require(try store.listArchive().next())
        var head = try ArchiveHead(line: line.prefix { $0 != 0x0A })
        (head.length, head.cached, head.present, head.lastAccess) = (12_000_000, 12_000_000, nil, .max)
        let text = try head.line, checksum = text.withUnsafeBytes { ChunkDigest.of($0) }
        let archive = ArchiveFormat.magic + Array("R".utf8) + UInt32(text.count).bytes + text + checksum.bytes
        let intake = other.store.importArchive(ArchiveOptions())
        try Self.feed(archive, to: intake)
        #expect(throws: ArchiveError.self) { try intake.finish() }
        for name in ["x", "y"] { #expect(try other.load(name)?.isComplete == true) }
        #expect(try other.row("a") == nil)
    }

    @Test func wantedIsWhatFitsBesideWhatWasWantedBefore() throws {
        let film = Media(seed: 63, size: 6_000_000), other = try OpenStore(maxSize: 16_000_000)
        for name in ["a", "b", "c"] {
            let generation = try opened.make(name, length: film.size)
            try opened.fill(generation, film, 0..<film.size)
        }
        let lines = try #require(try store.listArchive().next()).split(separator: 0x0A).dropLast()
        let heads = try lines.map { try ArchiveHead(line: $0) }
        #expect(try other.store.wanted(heads, ArchiveOptions()).noRoom == 1)
        var (claimed, answers): (Int64, [Int]) = (0, [])
        for head in heads {
            let wanted = try other.store.wanted([head], beside: claimed, ArchiveOptions())
            answers.append(wanted.heads.count)
            claimed += wanted.bytes
        }
        #expect(answers == [1, 1, 0])
        #expect(claimed >= 2 * film.size)
    }

    @Test func aFullCacheKeepsWhatWasReadLater() throws {
        let film = Media(seed: 63, size: 6_000_000)
        for (name, time) in [("old", 1_000_000), ("new", 9_000_000_000_000_000)] as [(String, Int64)] {
            let generation = try store.makeGeneration(OpenStore.key(name), head: Self.head(), length: film.size)
            try opened.fill(generation, film, 0..<film.size)
            generation.touch(at: time)
        }
        let bytes = try archive()
        let other = try OpenStore(maxSize: 16_000_000)
        for name in ["x", "y"] {
            let generation = try other.make(name, length: film.size)
            try other.fill(generation, film, 0..<film.size)
            generation.touch(at: name == "x" ? 2_000_000 : 8_000_000_000_000)
        }
        let report = try Self.take(bytes, into: other)
        #expect(report.added == 1 && report.noRoom == 1)
        #expect(try other.load("new")?.isComplete == true && other.load("old") == nil)
        #expect(try other.load("y")?.isComplete == true)
        #expect(other.store.ledger.size <= 16_000_000)
    }

    // MARK: Archives that are cut or damaged

    @Test func anArchiveCutAnywhereIsRefusedAndWhatCameBeforeIsTheSame() throws {
        let (bytes, true_) = try smallArchive()
        for count in 0..<bytes.count {
            let (events, error) = Self.read(Array(bytes[..<count]))
            #expect(error != nil, "cut after \(count) bytes")
            guard true_.starts(with: events) else {
                Issue.record("another archive after \(count) bytes")
                return
            }
        }
        #expect(Self.read(bytes).error == nil)
        #expect(Self.read(bytes + [0]).error != nil)
    }

    @Test func eachFlippedByteIsFound() throws {
        let (bytes, true_) = try smallArchive()
        for place in bytes.indices {
            var damaged = bytes
            damaged[place] ^= 1 << UInt8(place % 8)
            let (events, error) = Self.read(damaged)
            #expect(error != nil, "byte \(place)")
            guard true_.starts(with: events) else {
                Issue.record("another archive with another byte \(place)")
                return
            }
        }
    }

    @Test(arguments: [false, true]) func damageLeavesWhatWasCompleteAndACutWholeChunksIfWanted(keepsParts: Bool) throws
    {
        for name in ["a", "b", "c"] {
            try keep(name, filling: 0..<100_000 / 4096 * 4096)
            opened.checkpoint()
        }
        let bytes = try archive(), order = Self.urls(bytes)
        let second = try #require(Data(bytes).range(of: Data(order[1].utf8))).lowerBound
        for (damaged, text, isContinued) in [
            (Array(bytes[..<(second + 60_000)]), "cut short at byte \(second + 60_000), in \(order[1]);", keepsParts),
            (
                bytes.enumerated().map { $0 == second + 60_000 ? ~$1 : $1 },
                ", in \(order[1]): the checksum of a chunk;", false
            ),
        ] {
            let other = try OpenStore()
            let intake = other.store.importArchive(Self.options(keepsParts: keepsParts))
            let error = #expect(throws: ArchiveError.self) {
                try Self.feed(damaged, to: intake)
                _ = try intake.finish()
            }
            #expect(error?.description.contains(text) == true, "\(String(describing: error))")
            #expect(intake.report.added == 1)
            other.settle()
            other.closeUnused()
            let stay = isContinued ? Set(order[..<2]) : [order[0]]
            #expect(Set(try other.store.resources(ResourceQuery()).resources.map(\.url)) == stay)
            #expect(other.dataFiles.count == stay.count)
            // A whole archive continues.
            let report = try Self.take(bytes, into: other)
            #expect(report.present == 1 && report.added == (isContinued ? 1 : 2))
            #expect(report.extended == (isContinued ? 1 : 0))
            #expect(intake.report.bytes + report.bytes == 3 * 98_304)
            for name in ["a", "b", "c"] {
                let found = try #require(try other.load(name))
                #expect(try found.firstWrongChunk(media) == nil && found.presentBytes(of: 0..<media.size) == 98_304)
            }
        }
    }

    /// No other archive could show that its chunks belong to those that came.
    @Test(arguments: ["W/\"weak\"", "\"strong\""]) func whatCannotBeContinuedIsDiscardedAtACut(etag: String) throws {
        try keep("a", head: Self.head(etag: etag), filling: 0..<media.size)
        let other = try OpenStore(), intake = other.store.importArchive(Self.options(keepsParts: true))
        try Self.feed(Array(try archive().dropLast(9000)), to: intake)
        #expect(throws: ArchiveError.self) { try intake.finish() }
        other.settle()
        other.closeUnused()
        #expect(other.dataFiles.count == (etag.hasPrefix("W/") ? 0 : 1))
        #expect(intake.report.imported == 0)
    }

    @Test func aPartNeverReplacesWhatIsThere() throws {
        let newer = Media(seed: 62, size: 50_000)
        try keep("a", newer, head: Self.head(etag: "\"v2\"", validatedAt: 1_700_000_500), filling: 0..<newer.size)
        let other = try OpenStore(), intake = other.store.importArchive(Self.options(keepsParts: true))
        do { _ = try other.make("a", media, filling: 0..<media.size) }
        try Self.feed(Array(try archive().dropLast(9000)), to: intake)
        intake.cancel()
        #expect(try other.load("a")?.firstWrongChunk(media) == nil && other.load("a")?.isComplete == true)
    }

    @Test func anotherVersionThatCameMeanwhileIsNotPinned() throws {
        try keep("a", filling: 0..<media.size)
        #expect(try store.setPinned(true, OpenStore.key("a")))
        try store.administration.setDownloaded(OpenStore.key("a"))
        let other = try OpenStore(), intake = other.store.importArchive(ArchiveOptions())
        try Self.feed(try archive(), to: intake)
        do { _ = try other.make("a", Media(seed: 65, size: 4096), filling: 0..<4096) }
        #expect(try intake.finish().kept == 1)
        let kept = try other.store.index.pins.kept(OpenStore.key("a"))
        #expect(!kept.isPinned && !kept.isDownloaded)
    }

    @Test func anImportThatIsKilledLeavesNothingOfItsLastResource() throws {
        for name in ["a", "b"] { try keep(name, filling: 0..<media.size) }
        let bytes = try archive(), other = try OpenStore()
        let intake = other.store.importArchive(ArchiveOptions())
        try Self.feed(Array(bytes[..<900_000]), to: intake)
        let killed = try other.killed()
        #expect(try killed.store.resources(ResourceQuery()).resources.isEmpty)
        #expect(killed.dataFiles.isEmpty)
    }

    @Test func damagedChunksAreLeftOutAndDropped() throws {
        try keep("a", filling: 0..<media.size)
        let generation = try #require(try opened.load("a"))
        opened.checkpoint()
        try generation.file.write([1, 2, 3].withUnsafeBytes { UnsafeRawBufferPointer($0) }, at: 5 * 4096)
        let other = try OpenStore()
        _ = try Self.take(try archive(), into: other)
        #expect(try #require(try other.load("a")).gap(in: 0..<media.size) == 5 * 4096..<6 * 4096)
        #expect(!generation.isChunkPresent(5))
    }

    @Test func whatIsEvictedOrReplacedMeanwhileIsConsistent() throws {
        try keep("a", filling: 0..<media.size)
        let export = try store.exportArchive()
        var bytes: [UInt8] = []
        for _ in 0..<2 { bytes += try #require(try export.next()) }
        let former = try #require(try opened.load("a"))
        store.retire(former)
        try keep("a", Media(seed: 66, size: 5000), head: Self.head(etag: "\"v2\""), filling: 0..<5000)
        bytes += try Self.bytes(export)
        let other = try OpenStore()
        #expect(try Self.take(bytes, into: other).added == 1)
        #expect(try #require(try other.load("a")).firstWrongChunk(media) == nil)
    }

    // MARK: Decisions

    @Test(arguments: [
        ("\"v1\"", 100, 100, 4, 8, false, false, ArchiveDecision.extend),
        ("\"v1\"", 100, 100, 8, 4, false, false, .pass(.present)),
        ("\"v1\"", 100, 900, 4, 8, true, true, .extend),
        ("\"v2\"", 200, 100, 8, 4, false, false, .replace),
        ("\"v2\"", 100, 100, 4, 8, false, false, .pass(.older)),
        ("\"v2\"", 200, 100, 8, 4, true, false, .pass(.kept)),
        ("\"v2\"", 200, 100, 8, 12, true, false, .replace),
        ("\"v2\"", 200, 100, 8, 12, true, true, .pass(.kept)),
    ]) func decisions(
        etag: String, theirTime: Int64, ownTime: Int64, ownChunks: Int64, theirChunks: Int64, isKept: Bool,
        isBeingDownloaded: Bool, expected: ArchiveDecision
    ) {
        let length: Int64 = 12 * 4096
        let theirs = ArchivedResource(
            key: OpenStore.key("a"), head: Self.head(etag: etag, validatedAt: theirTime), length: length,
            geometry: OpenStore.small, present: [0..<theirChunks * 4096], cached: theirChunks * 4096, lastAccess: 0,
            kept: .init(), whole: nil)
        let own = OwnVersion(
            id: GenerationID(value: 1), head: Self.head(validatedAt: ownTime), length: length,
            geometry: OpenStore.small, present: [0..<ownChunks * 4096], isKept: isKept, isBeingFilled: false)
        #expect(ArchiveDecision(theirs, own: own, isBeingDownloaded: isBeingDownloaded) == expected)
        #expect(ArchiveDecision(theirs, own: nil, isBeingDownloaded: isBeingDownloaded) == .add)
    }

    @Test func aListNamesWhatAnotherCacheWants() throws {
        for name in ["a", "b", "c"] { try keep(name, filling: 0..<20_480) }
        let other = try OpenStore()
        do { _ = try other.make("b", media, filling: 0..<20_480) }
        let list = try store.listArchive()
        let lines = try #require(try list.next()).split(separator: 0x0A)
        #expect(try list.next() == nil)
        #expect(ArchiveListEnd(line: lines[3])?.resources == 3)
        let heads = try lines.dropLast().map { try ArchiveHead(line: $0) }
        let wanted = try other.store.wanted(heads, ArchiveOptions()).heads
        #expect(Set(wanted.map(\.url)) == [OpenStore.key("a").text, OpenStore.key("c").text])
        let export = try store.exportArchive(of: wanted.map(\.generation) + ["00000000000000ff", "nonsense"])
        #expect(Self.urls(try Self.bytes(export)) == wanted.map(\.url))
    }

    /// They would frame this cache's own responses, or speak for it.
    @Test func fieldsThatTheStoreNeverKeepsAreRemoved() throws {
        let bad = [
            "Transfer-Encoding", "Content-Length", "Connection", "x-named", "Keep-Alive", "Trailer", "Upgrade",
            "Set-Cookie", "Age", "Reelcache-Source", "Accept-Ranges", "Content-Range", "Date", "Cache-Status",
        ]
        let fields = HeaderFields(
            [.init(name: "ETag", value: "\"v1\"")] + bad.map { .init(name: $0, value: $0 == "Age" ? "5" : "x-named,") })
        let head = GenerationHead(status: 200, fields: fields, finalURL: "https://cdn.example/a", storedAt: 5)
        try keep("a", media, head: head, filling: 0..<4096)
        let other = try OpenStore()
        #expect(try Self.take(try archive(), into: other).added == 1)
        #expect(try other.load("a")?.head.fields.lines.map(\.name) == ["ETag"])
    }

    /// Nothing comes again when a transfer that broke is continued.
    @Test func whatIsThereInPartIsWantedFromItsFirstGap() throws {
        try keep("a", filling: 0..<media.size)
        let other = try OpenStore()
        do { _ = try other.make("a", media, filling: 0..<300_000 / 4096 * 4096) }
        let line = try #require(try store.listArchive().next())
        let head = try ArchiveHead(line: line.prefix { $0 != 0x0A })
        let start = try #require(try other.store.wanted([head], ArchiveOptions()).starts[head.generation])
        #expect(start == 300_000 / 4096 * 4096)
        let bytes = try Self.bytes(try store.exportArchive(of: ["\(head.generation)@\(start)"]))
        #expect(bytes.count < media.size - start + 3000)
        #expect(try Self.take(bytes, into: other).bytes == media.size - start)
        #expect(try other.load("a")?.isComplete == true)
        #expect(try other.load("a")?.firstWrongChunk(media) == nil)
        for text in ["", "@5", "0123456789abcdef@", "0123456789abcdef@-1", "0123456789abcdef@1@2", "0123456789abcdeg"] {
            #expect(ArchiveSelection(text) == nil)
        }
    }

    @Test func headsThatCannotBeRightAreRefused() throws {
        try keep("a", filling: 0..<4096)
        let line = try #require(try store.listArchive().next())
        let head = try ArchiveHead(line: line.prefix { $0 != 0x0A })
        #expect((try? head.checked(now: .max)) != nil)
        let changes: [(inout ArchiveHead) -> Void] = [
            { $0.url = "ftp://example.com/a" }, { $0.url = "https://EXAMPLE.com/a" }, { $0.url = "" },
            { $0.url += " x=1" }, { $0.length = 0 }, { $0.length = .max }, { $0.length = -1 }, { $0.chunkSize = 4097 },
            { $0.chunkSize = .min }, { $0.cached = $0.length + 1 }, { $0.cached = -1 }, { $0.status = 99 },
            { $0.cached = 0 }, { $0.status = 150 }, { $0.status = 206 }, { $0.status = 404 },
            { $0.generation = "" }, { $0.generation = "0123456789ABCDEF" }, { $0.generation += "&x=1" },
            { $0.fields = [["Vary", "*"]] }, { $0.finalURL = "file:///etc/passwd" }, { $0.finalURL = "" },
            { $0.selecting = [["Accept-Language", "de"]] },
            { $0.selecting = (0..<100).map { ["x-\($0)", nil] } }, { $0.present = [0, 4000] },
            { $0.fields = [["a"]] }, { $0.fields = [["a b", "c"]] }, { $0.fields = [["a", "b\r\nc: d"]] },
            { $0.fields = [["ETag", String(repeating: "x", count: 9000)]] },
            { $0.selecting = [["a"]] }, { $0.selecting = [["authorization", " 12"]] }, { $0.finalURL = "a\nb" },
            { $0.storedAt = -1 }, { $0.validatedAt = .max }, { $0.initialAge = -1 }, { $0.whole = "nothing" },
            { $0.present = [1] }, { $0.present = [5, 4] }, { $0.present = [0, .max] }, { $0.present = [0, 4, 4, 8] },
        ]
        for (number, change) in changes.enumerated() {
            var changed = head
            change(&changed)
            #expect(throws: ArchiveHeadDamage.self, "change \(number)") { try changed.checked(now: .max) }
        }
    }
}

extension ArchiveTests {
    private static func head(etag: String = "\"v1\"", validatedAt: Int64 = 1_700_000_100, variant: Variant = Variant())
        -> GenerationHead
    {
        let fields = HeaderFields([
            .init(name: "ETag", value: etag), .init(name: "Content-Type", value: "video/mp4"),
            .init(name: "X-Ümlaut".replacing("Ü", with: "U"), value: "a \"quoted\" ü"),
        ])
        return GenerationHead(
            status: 200, fields: fields, variant: variant, finalURL: "https://cdn.example/film.mp4", isPublic: true,
            storedAt: 1_700_000_000, times: ResponseTimes(validatedAt: validatedAt, initialAge: 7))
    }

    private func keep(
        _ name: String, _ media: Media? = nil, head: GenerationHead = head(), filling ranges: Range<Int64>...
    )
        throws
    {
        try keep(OpenStore.key(name), media ?? self.media, head: head, ranges)
    }

    private func keep(_ key: CacheKey, head: GenerationHead, filling range: Range<Int64>) throws {
        try keep(key, media, head: head, [range])
    }

    private func keep(_ key: CacheKey, _ media: Media, head: GenerationHead, _ ranges: [Range<Int64>]) throws {
        let generation = try store.makeGeneration(key, head: head, length: media.size)
        for range in ranges { try opened.fill(generation, media, range) }
    }

    private func archive() throws -> [UInt8] { try Self.bytes(try store.exportArchive()) }

    private static func bytes(_ export: ArchiveExport) throws -> [UInt8] {
        var bytes: [UInt8] = []
        while let piece = try export.next() { bytes += piece }
        return bytes
    }

    private static func feed(_ bytes: [UInt8], to intake: ArchiveImport, pieces: Int = 50_000) throws {
        for start in stride(from: 0, to: bytes.count, by: pieces) {
            try bytes[start..<min(bytes.count, start + pieces)].withUnsafeBytes { try intake.write($0) }
        }
    }

    private static func options(keepsParts: Bool) -> ArchiveOptions {
        var options = ArchiveOptions()
        options.keepsParts = keepsParts
        return options
    }

    private static func take(
        _ bytes: [UInt8], into other: OpenStore, pieces: Int = 50_000, options: ArchiveOptions = ArchiveOptions()
    ) throws -> ArchiveReport {
        let intake = other.store.importArchive(options)
        try feed(bytes, to: intake, pieces: pieces)
        return try intake.finish()
    }

    /// Resources and chunks, for comparison.
    private enum Seen: Equatable {
        case resource(CacheKey, GenerationHead, Int64), chunk(Int, [UInt8]), endOfResource, end
    }

    private static func read(_ bytes: [UInt8]) -> (events: [Seen], error: ArchiveError?) {
        let reader = ArchiveReader(now: AccessClock.now())
        var events: [Seen] = []
        do {
            try bytes.withUnsafeBytes { bytes in
                try reader.append(bytes) { event throws(ArchiveError) in
                    switch event {
                    case .resource(let resource): events.append(.resource(resource.key, resource.head, resource.length))
                    case .chunk(let number, _, let bytes): events.append(.chunk(number, Array(bytes)))
                    case .endOfResource: events.append(.endOfResource)
                    case .end: events.append(.end)
                    }
                }
            }
            try reader.finish()
            return (events, nil)
        } catch { return (events, error as? ArchiveError) }
    }

    private static func urls(_ bytes: [UInt8]) -> [String] {
        read(bytes).events.compactMap { if case .resource(let key, _, _) = $0 { key.text } else { nil } }
    }

    private func smallArchive() throws -> ([UInt8], [Seen]) {
        for (name, size) in [("a", 5000), ("b", 300)] as [(String, Int64)] {
            let media = Media(seed: 64, size: size)
            try keep(name, media, filling: 0..<size)
        }
        let bytes = try archive(), (events, error) = Self.read(bytes)
        #expect(error == nil && events.count == 8)
        return (bytes, events)
    }

    private static func expectSame(_ key: CacheKey, _ one: OpenStore, _ other: OpenStore, _ media: Media) throws {
        let (first, second) = (
            try #require(try one.store.loader.load(key)), try #require(try other.store.loader.load(key))
        )
        #expect(first.head == second.head && first.length == second.length && first.geometry == second.geometry)
        #expect(first.presence == second.presence)
        #expect(try second.firstWrongChunk(media) == nil)
        let rows = try [one, other].map { store in
            let row = try #require(try store.store.index.rows.generation(of: key))
            return try #require(try store.store.index.rows.extents(of: row))
        }
        #expect(rows[0].map(\.checksums) == rows[1].map(\.checksums))
        #expect(rows[0].map(\.lastAccess) == rows[1].map(\.lastAccess))
    }
}
