import Testing

@testable import Downloads

/// When feeds are checked, by tables.
@Suite struct FeedScheduleTests {
    struct Success: Sendable {
        let every: Int64, lifetime: Int64?, random: Double, delay: Double
    }

    @Test(arguments: [
        Success(every: 3600, lifetime: nil, random: 0.5, delay: 3600),
        Success(every: 3600, lifetime: nil, random: 0, delay: 3240),
        Success(every: 3600, lifetime: nil, random: 1, delay: 3960),
        Success(every: 600, lifetime: 3600, random: 0.5, delay: 3600),
        Success(every: 7200, lifetime: 3600, random: 0.5, delay: 7200),
        // A week of the feed's own counts as a day; a week of the subscriber's is a week.
        Success(every: 3600, lifetime: 604_800, random: 0.5, delay: 86_400),
        Success(every: 604_800, lifetime: nil, random: 0.5, delay: 604_800),
    ])
    func goodCheckIsFollowedByTheNextAfterTheLongerOfBothTimes(_ row: Success) {
        let delay = FeedSchedule.delay(every: row.every, lifetime: row.lifetime, random: row.random)
        #expect(abs(delay - row.delay) < 0.001)
    }

    struct Failure: Sendable {
        let failures: Int, every: Int64, delay: Double
    }

    @Test(arguments: [
        Failure(failures: 1, every: 3600, delay: 600),
        Failure(failures: 2, every: 3600, delay: 1200),
        Failure(failures: 5, every: 3600, delay: 9600),
        Failure(failures: 9, every: 3600, delay: 86_400),
        Failure(failures: 1000, every: 3600, delay: 86_400),
        Failure(failures: 0, every: 3600, delay: 600),
        Failure(failures: 20, every: 604_800, delay: 604_800),
    ])
    func failedCheckIsRepeatedLaterEachTime(_ row: Failure) {
        #expect(FeedSchedule.delay(afterFailures: row.failures, every: row.every, random: 0.5) == row.delay)
    }

    /// By jitter, or by a change of the network.
    @Test(arguments: [(60, 540), (600, 600), (7200, 7200), (1e18, 86_400)] as [(Double, Double)])
    func retryAfterIsNeverCutShort(retryAfter: Double, delay: Double) {
        let url = FeedWorld.url("https://feed.test/rss")
        var subscription = Subscription(url, options: SubscriptionOptions(), added: 0, due: 0)
        subscription.failed(FeedFailure("503", retryAfter: retryAfter), now: 1000, random: 0)
        #expect(abs(subscription.due - 1000 - delay) < 0.001)
        subscription.retrySoon(now: 1000, count: 1, random: 0)
        #expect(abs(subscription.due - 1000 - min(retryAfter, 86_400)) < 0.001)
    }

    @Test(
        arguments: [
            // Not at once, then each time after twice as long, a week in all.
            (0, 0, 599, .later), (0, 0, 600, .due), (0, 600, 1199, .later), (0, 600, 1200, .due),
            (0, 7200, 14_399, .later),
            (0, 7200, 14_400, .due), (0, 604_800, 1_209_600, .due), (0, 604_801, 9_999_999, .never),
            // The clock was set back.
            (1000, 0, 600, .due), (0, 1000, 0, .later),
        ] as [(Int64, Int64, Double, FeedSchedule.Retry)])
    func failedDownloadsAreRetriedLessAndLessOften(
        begun: Int64, failed: Int64, now: Double, retry: FeedSchedule.Retry
    ) {
        #expect(FeedSchedule.retry(first: begun, failed: failed, now: now) == retry)
    }

    struct Start: Sendable {
        let due: Double, count: Int, random: Double, first: Double
    }

    @Test(arguments: [
        // What is not due yet stays as it was.
        Start(due: 5000, count: 10, random: 0.5, first: 5000),
        // What is overdue is spread, over a minute at most.
        Start(due: 0, count: 10, random: 0.5, first: 1010), Start(due: 0, count: 10, random: 0, first: 1000),
        Start(due: 0, count: 1000, random: 0.999, first: 1059.94),
        // A time that the clock will not reach was saved while it was wrong.
        Start(due: 1e9, count: 10, random: 0.5, first: 1000 + 95_040),
    ])
    func checksAfterAStartAreNotAllAtOnce(_ row: Start) {
        let first = FeedSchedule.start(due: row.due, every: 3600, count: row.count, now: 1000, random: row.random)
        #expect(abs(first - row.first) < 0.001)
    }
}
