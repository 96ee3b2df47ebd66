/// A loop-bound object that passes through other threads, to be used on its own loop again.
///
/// `@unchecked Sendable` because the value is accessed only on its loop, which `value` checks.
@usableFromInline
package struct LoopBound<Value>: @unchecked Sendable {
    @usableFromInline package let loop: EventLoop
    @usableFromInline let stored: Value

    // Inlinable: a generic form, called from another module, would look its types up at run time for each call. Without
    // the attribute of the type, these members would not be.
    @inlinable @inline(__always) package init(_ value: Value, on loop: EventLoop) {
        self.loop = loop
        stored = value
    }

    @inlinable package var value: Value {
        precondition(loop.isCurrent, "a loop-bound value was used off its loop")
        return stored
    }

    /// Calls `body` with the value on its loop, soon. From any thread.
    @inlinable package func post(_ body: @escaping @Sendable (Value) -> Void) {
        loop.post { body(self.value) }
    }
}
