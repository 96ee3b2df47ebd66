import EventIO
import Synchronization
import TestSupport
import Testing

/// Work comes to a loop from everywhere, and none of it is lost or waits for something else to happen.
@Suite struct EventLoopTests {
    @Test func workThatIsPostedBeforeTheStartRunsInItsOrder() throws {
        let loop = try EventLoop()
        let done = Monitor<[Int]>([])
        for number in 0..<3 { loop.post { done.update { $0.append(number) } } }
        loop.start()
        #expect(try done.wait(for: "the work") { $0.count == 3 ? $0 : nil } == [0, 1, 2])
        loop.stop()
    }

    /// Each is waited for before the next is posted, so that the loop sleeps in between.
    @Test func eachPostWakesTheLoop() throws {
        let loop = try EventLoop()
        loop.start()
        for number in 0..<2000 { #expect(loop.sync { number } == number) }
        loop.stop()
    }

    @Test func postsOfManyThreadsAndOfTheLoopItselfAllRun() throws {
        let loop = try EventLoop()
        loop.start()
        let (count, perThread) = (Monitor(0), 2000)
        _ = try concurrently(4) { _ in
            for _ in 0..<perThread {
                loop.post {
                    // From the loop's own thread, and once this has returned.
                    loop.post { count.update { $0 += 1 } }
                    loop.afterCallback { count.update { $0 += 1 } }
                }
            }
        }
        try count.wait(for: "all of it") { $0 == 2 * 4 * perThread ? () : nil }
        loop.stop()
    }

    @Test func whatIsPostedBeforeStopRunsAndWhatComesLaterDoesNot() throws {
        let loop = try EventLoop()
        loop.start()
        let count = Atomic(0)
        for _ in 0..<100 { loop.post { count.add(1, ordering: .relaxed) } }
        loop.stop()
        #expect(count.load(ordering: .relaxed) == 100)
        loop.post { count.add(1, ordering: .relaxed) }
        #expect(count.load(ordering: .relaxed) == 100)
    }
}
