import HTTPTransport
import Testing

/// How long a body is waited for.
@Suite struct BodyPatienceTests {
    @Test func bytesEarnTimeUpToTheMost() {
        var patience = TransportLimits.BodyPatience()
        func wait(_ received: Int64, _ seconds: UInt64, isReading: Bool = true) -> Double {
            patience.wait(received: received, isReading: isReading, at: seconds * 1_000_000_000, most: 30)
        }
        #expect(wait(0, 100) == 30)
        #expect(wait(5_000, 120) == 20)
        // A fast client may pause for as long as at the beginning.
        #expect(wait(1_000_000, 121) == 30)
        #expect(wait(1_000_000, 125, isReading: false) == 26)
        // While the proxy does not read, no time passes.
        #expect(wait(1_000_000, 225) == 26)
        #expect(wait(1_000_001, 250) < 1.1)
    }
}
