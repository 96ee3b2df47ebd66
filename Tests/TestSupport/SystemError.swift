import Foundation

/// A system call that failed: which, on what, and why.
package struct SystemError: Error, Equatable, CustomStringConvertible {
    package let operation: String
    package let code: Int32

    package init(_ operation: String, _ code: Int32 = errno) {
        self.operation = operation
        self.code = code
    }

    package var description: String { "\(operation): \(String(cString: strerror(code)))" }
}

/// Makes the call until a signal no longer interrupts it. Returns its result, or throws when that is negative.
@discardableResult
func retryingInterrupts<T: SignedInteger>(_ operation: @autoclosure () -> String, _ call: () -> T) throws -> T {
    while true {
        let result = call()
        if result >= 0 { return result }
        if errno != EINTR { throw SystemError(operation()) }
    }
}
