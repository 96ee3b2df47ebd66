/// The loops of a process: one for each core that it may use, unless configured otherwise.
package final class EventLoopGroup: Sendable {
    package let loops: [EventLoop]

    package init(count: Int) throws(EventLoopError) {
        precondition(count > 0)
        var loops: [EventLoop] = []
        for index in 0..<count { loops.append(try EventLoop(index: index)) }
        self.loops = loops
    }

    package func start() {
        for loop in loops { loop.start() }
    }

    package func stop() {
        for loop in loops { loop.stop() }
    }
}
