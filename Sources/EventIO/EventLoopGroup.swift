/// The loops of a process: one for each core that it may use, unless configured otherwise.
package final class EventLoopGroup: Sendable {
    package let loops: [EventLoop]

    package init(count: Int) throws(EventLoopError) {
        precondition(count > 0)
        var loops: [EventLoop] = []
        for index in 0..<count { loops.append(try EventLoop(index: index)) }
        self.loops = loops
    }

    /// Starts all of them, or none.
    package func start() throws(EventLoopError) {
        do throws(EventLoopError) {
            for loop in loops { try loop.start() }
        } catch {
            stop()
            throw error
        }
    }

    package func stop() {
        for loop in loops { loop.stop() }
    }
}
