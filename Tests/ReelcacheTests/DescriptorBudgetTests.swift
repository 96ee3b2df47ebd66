import HTTPTransport
import Logging
import Testing
import TestSupport

@testable import Reelcache

/// Shares of what a process may have open.
@Suite struct DescriptorBudgetTests {
    @Test(arguments: [1, 2, 8, 64, 256]) func whatIsNeededIsEnoughAndOneLessIsNot(loops: Int) throws {
        let needed = DescriptorBudget.needed(loops: loops)
        #expect(DescriptorBudget(limit: needed, loops: loops) != nil)
        #expect(DescriptorBudget(limit: needed - 2, loops: loops) == nil)
    }

    @Test(arguments: [128, 256, 600, 1024, 4096, 65_536, 1 << 20]) func sharesFitIntoTheLimit(limit: Int) throws {
        for loops in [1, 2, 8, 16] {
            guard let budget = DescriptorBudget(limit: limit, loops: loops) else { continue }
            let (idle, refused) = (budget.idleOriginsOfALoop * loops, budget.refusedOfALoop * loops)
            // Where one for each loop is more than that, it is in the reserve.
            #expect(
                budget.clients + budget.origins + idle + refused + budget.resources + 8 * loops + 48 <= limit
                    + (idle == loops ? loops : 0) + (refused == loops ? loops : 0))
            #expect(budget.origins >= 4 && idle <= max(loops, budget.origins))
            #expect(budget.resources <= 4096)
        }
    }

    @Test func nothingIsEnoughForNone() {
        #expect(DescriptorBudget(limit: 0, loops: 1) == nil && DescriptorBudget(limit: 48, loops: 2) == nil)
    }

    /// So that there is room to refuse the others.
    @Test func connectionsAreLimitedBelowTheirShare() throws {
        let budget = try #require(DescriptorBudget(limit: 4096, loops: 4))
        #expect(budget.admittedClients == budget.clients - 4)
        let silent = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        for (wanted, expected) in [(nil, nil), (10, 10), (1_000_000, budget.admittedClients)] as [(Int?, Int?)] {
            var limits = ClientLimits()
            limits.connections = wanted
            #expect(limits.bounded(by: budget, silent).connections == expected)
        }
    }
}
