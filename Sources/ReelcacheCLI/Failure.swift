@preconcurrency import Foundation

/// How a command ends that could not do what it was asked.
enum Failure {
    /// Says why on standard error and exits.
    /// - Parameters:
    ///   - code: 1 failed, 2 wrong usage.
    ///   - isPrefixed: whether the message says already that it is an error.
    static func exit(_ message: String, code: Int32 = 1, isPrefixed: Bool = false) -> Never {
        FileHandle.standardError.write(Data("\(isPrefixed ? "" : "reelcache: ")\(message)\n".utf8))
        Foundation.exit(code)
    }
}

/// Variables of the environment.
enum Environment {
    static subscript(_ name: String) -> String? {
        ProcessInfo.processInfo.environment[name].flatMap { $0.isEmpty ? nil : $0 }
    }
}

/// Standard output of a command that runs on.
enum StandardOutput {
    /// Each line goes out at once, also into a pipe: whoever started this command may wait for it.
    static func useLines() {
        setvbuf(stdout, nil, _IOLBF, 0)
    }
}
