import Downloads
import Testing

@Suite struct DownloadPriorityTests {
    @Test func theHigherOneGoesFirst() {
        #expect(DownloadPriority.allCases.shuffled().sorted() == [.high, .normal, .low])
    }
}
