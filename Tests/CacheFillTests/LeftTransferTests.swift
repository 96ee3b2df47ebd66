import CachePolicy
import Testing

@testable import CacheFill

/// What becomes of a transfer that nobody follows any more.
@Suite struct LeftTransferTests {
    private static func rule(_ fill: FillMode = .ahead(bytes: 32 << 20), isMetered: Bool = false) -> ResolvedRule {
        var rule = ResolvedRule()
        rule.fill = fill
        rule.isMetered = isMetered
        return rule
    }

    @Test(
        arguments: [
            // Whether who has left it does not come back, whether anything comes in, the rule, and what becomes of it.
            (false, true, rule(), .linger), (false, true, rule(.whole), .linger),
            (false, true, rule(.read), .finishChunk), (false, true, rule(isMetered: true), .finishChunk),
            (false, false, rule(), .finishChunk), (true, true, rule(), .stop), (true, false, rule(.read), .stop),
        ] as [(Bool, Bool, ResolvedRule, FetchState.LeftTransfer)])
    func transferThatIsLeftLingersOnlyForWhoMayComeBack(
        wasLeftForGood: Bool, isComingIn: Bool, rule: ResolvedRule, way: FetchState.LeftTransfer
    ) {
        let decide = {
            FetchState.LeftTransfer.way(
                wasLeftForGood: wasLeftForGood, isComingIn: isComingIn, rule, lingerSeconds: $0)
        }
        #expect(decide(5) == way)
        #expect(decide(0) == (way == .linger ? .finishChunk : way))
    }
}
