import EventIO
import Glibc
import Synchronization
import TestSupport
import Testing

/// Work comes to a loop from everywhere, and none of it is lost or waits for something else to happen.
@Suite struct EventLoopTests {
    @Test func workThatIsPostedBeforeTheStartRunsInItsOrder() throws {
        let loop = try EventLoop()
        let done = Monitor<[Int]>([])
        for number in 0..<3 { loop.post { done.update { $0.append(number) } } }
        try loop.start()
        #expect(try done.wait(for: "the work") { $0.count == 3 ? $0 : nil } == [0, 1, 2])
        loop.stop()
    }

    @Test(.disabled(if: getenv("TSAN_OPTIONS") != nil, "the sanitizer starts threads, too"))
    func threadThatTheSystemRefusesIsAnError() async {
        await #expect(processExitsWith: .success) {
            let group = try EventLoopGroup(count: 2)
            var none = rlimit(rlim_cur: 1, rlim_max: 1)
            // root has no limit.
            guard setrlimit(__rlimit_resource_t(__RLIMIT_NPROC.rawValue), &none) == 0,
                getuid() != 0 || setuid(65_534) == 0
            else { return }
            #expect(throws: EventLoopError.self) { try group.start() }
        }
    }

    /// The program that a library is part of need not ignore the signal.
    @Test func brokenPipeIsAnErrorAndNoEnd() throws {
        let loop = try EventLoop()
        try loop.start()
        let isBlocked = loop.sync {
            var set = sigset_t()
            return pthread_sigmask(SIG_BLOCK, nil, &set) == 0 && sigismember(&set, SIGPIPE) == 1
        }
        #expect(isBlocked)
        loop.stop()
    }

    /// Each is waited for before the next is posted, so that the loop sleeps in between.
    @Test func eachPostWakesTheLoop() throws {
        let loop = try EventLoop()
        try loop.start()
        for number in 0..<2000 { #expect(loop.sync { number } == number) }
        loop.stop()
    }

    @Test func postsOfManyThreadsAndOfTheLoopItselfAllRun() throws {
        let loop = try EventLoop()
        try loop.start()
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

    /// However much work there is for the loop's own thread, sockets are looked at in between.
    @Test func socketsHaveTheirTurnBetweenPiecesOfWork() throws {
        let loop = try EventLoop()
        var ends: [Int32] = [0, 0]
        #expect(pipe(&ends) == 0)
        let (reading, writing) = (ends[0], ends[1])
        let done = Atomic(0), doneBefore = Monitor<Int?>(nil)
        loop.post {
            var watcher: SocketWatcher?
            watcher = SocketWatcher(reading, .read, on: loop) {
                doneBefore.update { $0 = done.load(ordering: .relaxed) }
                watcher = nil
            }
            watcher?.arm()
            write(writing, "x", 1)
            for _ in 0..<100 {
                loop.post { done.add(1, ordering: .relaxed) }
                loop.afterCallback { done.add(1, ordering: .relaxed) }
            }
        }
        try loop.start()
        #expect(try doneBefore.wait(for: "the socket") { $0 } < 100)
        #expect(loop.sync { done.load(ordering: .relaxed) } == 200)
        loop.stop()
        close(reading)
        close(writing)
    }

    @Test func whatIsPostedBeforeStopRunsAndWhatComesLaterDoesNot() throws {
        let loop = try EventLoop()
        try loop.start()
        let count = Atomic(0)
        for _ in 0..<100 { loop.post { count.add(1, ordering: .relaxed) } }
        loop.stop()
        #expect(count.load(ordering: .relaxed) == 100)
        loop.post { count.add(1, ordering: .relaxed) }
        #expect(count.load(ordering: .relaxed) == 100)
    }
}
