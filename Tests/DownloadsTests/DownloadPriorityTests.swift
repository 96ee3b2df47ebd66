import Downloads
import Testing

@Suite struct DownloadPriorityTests {
    @Test func theHigherOneGoesFirst() {
        #expect(Download.Priority.allCases.shuffled().sorted() == [.high, .normal, .low])
    }
}
