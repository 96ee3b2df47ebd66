import Administration
import ArgumentParser
import ControlAPI
import Reelcache

/// The outcomes of several actions: one that fails does not prevent the others.
struct Batch<Value: Encodable>: Encodable {
    struct Failed: Encodable {
        let url: String
        let error: String
    }

    private(set) var done: [Value] = []
    private(set) var failed: [Failed] = []

    /// All done, none failed.
    init(done: [Value]) { self.done = done }

    mutating func add(_ value: Value) { done.append(value) }

    mutating func add(_ error: ControlError, of url: String) {
        failed.append(Failed(url: url, error: error.text(in: .flags)))
    }

    init(_ urls: [String], _ body: (String) throws -> Value) throws {
        for url in urls {
            do {
                done.append(try body(url))
            } catch let error as ControlError {
                failed.append(Failed(url: url, error: error.text(in: .flags)))
            }
        }
    }

    /// Prints what was done and what failed. If something failed, exits with 3, or with 1 if nothing was done.
    func end(
        _ printing: PrintingOptions, _ configuration: ProxyConfiguration, orElse none: String? = nil,
        line: (Value) throws -> String
    ) throws {
        try printing.print(
            self, configuration, text: done.isEmpty ? none : done.map(line).joined(separator: "\n"))
        try exitIfFailed(printing.secret, configuration)
    }

    /// Prints what failed, and exits.
    func exitIfFailed(_ secret: SecretOptions, _ configuration: ProxyConfiguration) throws {
        for failure in failed { Terminal.writeError("reelcache: \(try secret.shown(failure.error, configuration))") }
        if !failed.isEmpty { throw ExitCode(done.isEmpty ? 1 : 3) }
    }
}
