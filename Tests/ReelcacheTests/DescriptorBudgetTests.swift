import Testing

@testable import Reelcache

/// Shares of what a process may have open.
@Suite struct DescriptorBudgetTests {
    @Test(arguments: [1, 2, 8, 64, 256]) func whatIsNeededIsEnoughAndOneLessIsNot(loops: Int) throws {
        let needed = DescriptorBudget.needed(loops: loops)
        #expect(DescriptorBudget(limit: needed, loops: loops) != nil)
        #expect(DescriptorBudget(limit: needed - 2, loops: loops) == nil)
    }

    @Test(arguments: [128, 256, 1024, 4096, 65_536, 1 << 20]) func sharesFitIntoTheLimit(limit: Int) throws {
        for loops in [1, 2, 8] {
            guard let budget = DescriptorBudget(limit: limit, loops: loops) else { continue }
            let idle = budget.idleOriginsOfALoop * loops
            // Where one for each loop is more than that, it is in the reserve.
            #expect(
                budget.clients + budget.origins + idle + budget.resources + 8 * loops + 48 <= limit
                    + (idle == loops ? loops : 0))
            #expect(budget.origins >= 4 && idle <= max(loops, budget.origins))
            #expect(budget.resources <= 4096)
        }
    }

    @Test func nothingIsEnoughForNone() {
        #expect(DescriptorBudget(limit: 0, loops: 1) == nil && DescriptorBudget(limit: 48, loops: 2) == nil)
    }
}
