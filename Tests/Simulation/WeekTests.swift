import Testing

/// Downloads that outlive bad nights, in a cache that makes room by itself.
@Suite struct WeekTests {
    @Test func whatWasWantedIsThereInTheMorning() throws {
        let week = try Week(seed: 1)
        try week.run()
        #expect(week.violations.isEmpty)
        let kept = week.origin.films.filter { week.origin.costs[$0.name] != nil }
        let length = kept.reduce(0) { $0 + $1.current.length }
        let sent = week.origin.costs.values.reduce(0) { $0 + $1.sent }
        // More than the cache has room for, hundreds of outages, and nearly all of it was played.
        #expect(length > 2 * Week.limit && week.outages > 500 && week.played.count > 30)
        // Little is sent twice.
        #expect(sent * 100 <= length * 102)
        // What is not there failed, once; an outage is no failure of an episode.
        let failed = week.log.lines(.warning).filter { $0.hasPrefix("could not download") }
        #expect(failed.count == 1 && failed.allSatisfy { $0.contains("daily-404.mp4") })
        let outages = week.log.lines(.warning).filter { $0.hasPrefix("downloads from http://origin.test wait") }
        #expect(outages.count <= week.outages)
    }
}
