import ControlAPI
import Foundation
import Reelcache
import TestSupport
import Testing

@testable import Administration

@Suite struct RunningProxyEventsTests {
    /// It has the connection still open, as after a loss of the network.
    @Test func aProxyThatHangsIsNoticed() async throws {
        try await blocking {
            let cache = try TemporaryDirectory()
            let process = try ProxyProcess(cacheDirectory: cache.path)
            let proxy = try #require(RunningProxy(cacheDirectory: cache.path))
            let error = #expect(throws: ControlError.self) {
                try proxy.watchNow(patience: .seconds(1), isWanted: { true }) { _ in
                    kill(process.process.pid, SIGSTOP)
                    return true
                }
            }
            #expect(error?.text(in: .flags).contains("has sent nothing for 1 s") == true)
        }
    }

    @Test func timeInWhichThisProcessIsSuspendedIsNoSilence() {
        var (silence, now) = (Silence(), ContinuousClock.now)
        for _ in 0..<10 {
            silence.look(at: now)
            now += .milliseconds(250)
        }
        #expect(silence.length == .milliseconds(2250))
        silence.look(at: now + .seconds(3600))
        #expect(silence.length == .milliseconds(3250))
    }
}
