/// What stands in for the threads and the time of loops in a simulation: it runs all of them in one thread, in an order
/// and at times of its own (docs/dev/robustness.md).
package protocol LoopDriver: AnyObject, Sendable {
    /// Keeps work, which it runs by `EventLoop.drive`: for each loop in the order of the calls.
    func post(_ work: @escaping @Sendable () -> Void, to loop: EventLoop)

    /// Calls `fire` on the loop after a delay, unless the timer is scheduled anew or cancelled before.
    func schedule(_ timer: ObjectIdentifier, on loop: EventLoop, afterSeconds: Double, fire: @escaping () -> Void)

    func cancel(_ timer: ObjectIdentifier)
}
