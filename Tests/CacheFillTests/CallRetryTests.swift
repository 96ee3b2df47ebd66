import CachePolicy
import Testing

@testable import CacheFill

/// Whether a fetch tries again, and when. Four attempts, 1 s to 8 s between them; a host is waited for 10 s at first,
/// and 60 s midway.
@Suite struct CallRetryTests {
    private static func retry(_ audience: OriginCall.Retry.Audience = .whoHasNothing) -> OriginCall.Retry {
        OriginCall.Retry(
            RetryPolicy(maxAttempts: 4, base: 1, ceiling: 8), .init(first: 10, midway: 60), for: audience)
    }

    private static func failure(
        isTransient: Bool = true, canContinue: Bool = true, isNeeded: Bool = true, isForDownloads: Bool = false,
        delivered: Int64 = 0
    ) -> OriginCall.Retry.Failure {
        OriginCall.Retry.Failure(
            isTransient: isTransient, canContinue: canContinue, isNeeded: isNeeded, isForDownloads: isForDownloads,
            delivered: delivered)
    }

    // MARK: Before it is asked

    @Test(
        arguments: [
            (.whoHasNothing, 0, .now), (.whoHasNothing, 10, .later(afterSeconds: 10.5)),
            (.whoHasNothing, 10.1, .busy(retryAfter: 11)), (.midway, 60, .later(afterSeconds: 60.5)),
            (.midway, 61, .busy(retryAfter: 61)), (.whoHasIt, 0, .now), (.whoHasIt, 0.5, .busy(retryAfter: 1)),
            (.downloads, 0, .now), (.downloads, 3, .busy(retryAfter: 3)),
            // A tenth of a short wait, and no more than a second of a long one.
            (.whoHasNothing, 2, .later(afterSeconds: 2.1)),
        ] as [(OriginCall.Retry.Audience, Double, OriginCall.Retry.Turn)])
    func hostIsWaitedForAsLongAsSomebodyCanWait(
        audience: OriginCall.Retry.Audience, wait: Double, turn: OriginCall.Retry.Turn
    ) {
        #expect(Self.retry(audience).turn(wait: wait, random: 0.5) == turn)
    }

    // MARK: After a failure

    @Test(
        arguments: [
            (failure(), .again(afterSeconds: 0.5)), (failure(isTransient: false), .fail),
            (failure(canContinue: false), .fail), (failure(isNeeded: false), .fail),
            (failure(isForDownloads: true), .fail),
        ] as [(OriginCall.Retry.Failure, OriginCall.Retry.Verdict)])
    func onlyWhatIsWorthItIsTriedAgain(failure: OriginCall.Retry.Failure, verdict: OriginCall.Retry.Verdict) {
        var retry = Self.retry()
        #expect(retry.failed(failure, wait: 0, random: 0) == verdict)
    }

    @Test func eachAttemptWaitsTwiceAsLongUntilTheLast() {
        var retry = Self.retry()
        let verdicts = (1...4).map { _ in retry.failed(Self.failure(), wait: 0, random: 0) }
        #expect(
            verdicts == [.again(afterSeconds: 0.5), .again(afterSeconds: 1), .again(afterSeconds: 2), .fail])
    }

    @Test func bytesBetweenFailuresBeginTheCountAnew() {
        var retry = Self.retry()
        for _ in 1...3 { _ = retry.failed(Self.failure(), wait: 0, random: 0) }
        #expect(retry.failed(Self.failure(delivered: 1), wait: 0, random: 0) == .again(afterSeconds: 0.5))
        #expect(retry.failed(Self.failure(delivered: 1), wait: 0, random: 0) == .again(afterSeconds: 1))
    }

    @Test(
        arguments: [
            (0.1, .again(afterSeconds: 0.75)), (5, .again(afterSeconds: 5.25)), (60, .again(afterSeconds: 60.5)),
            (61, .busy(retryAfter: 61)),
        ] as [(Double, OriginCall.Retry.Verdict)])
    func hostThatWantsToBeLeftAloneIsWaitedForMidway(wait: Double, verdict: OriginCall.Retry.Verdict) {
        var retry = Self.retry()
        #expect(retry.failed(Self.failure(), wait: wait, random: 0.5) == verdict)
    }

    @Test func whoeverIsTriedForAgainIsWaitedForAsMidway() {
        var retry = Self.retry()
        #expect(retry.turn(wait: 50, random: 0) == .busy(retryAfter: 50))
        _ = retry.failed(Self.failure(), wait: 0, random: 0)
        #expect(retry.turn(wait: 50, random: 0) == .later(afterSeconds: 50))
    }
}
