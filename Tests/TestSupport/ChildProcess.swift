import Foundation
import Synchronization

/// A program run by a test: its output is collected line by line, and it is killed when this object goes.
package final class ChildProcess: Sendable {
    package enum Stream: Sendable, CaseIterable {
        case stdout, stderr
    }

    package enum Exit: Sendable, Equatable {
        /// It ended by itself, with this status.
        case exited(Int32)
        /// This signal ended it.
        case signalled(Int32)
    }

    /// What a program that has ended left behind.
    package struct Outcome: Sendable, Equatable {
        package let exit: Exit
        package let stdout: String
        package let stderr: String
    }

    struct State: Sendable {
        var output: [Stream: [UInt8]] = [:]
        var openStreams = Set(Stream.allCases)
        var exit: Exit?

        func text(_ stream: Stream) -> String { String(decoding: output[stream] ?? [], as: UTF8.self) }

        /// The lines that are complete, and the rest too once the stream has ended.
        func lines(_ stream: Stream) -> [String] {
            let lines = text(stream).split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
            return openStreams.contains(stream) || lines.last == "" ? lines.dropLast() : lines
        }
    }

    package let pid: pid_t
    private let name: String
    private let state = Monitor(State())

    /// Starts `executable`, a path, with standard input from `/dev/null`.
    /// - Parameters:
    ///   - environment: changes to this process's environment; `nil` removes a variable.
    ///   - inheriting: a descriptor of this process that the program gets, and its number there.
    /// - Throws: `SystemError` when it cannot be started.
    package init(
        _ executable: String, _ arguments: [String] = [], environment: [String: String?] = [:],
        inheriting inherited: (descriptor: Int32, as: Int32)? = nil
    ) throws {
        name = executable
        let outputs: [Int32]
        (pid, outputs) = try spawnWithPipes(
            [executable] + arguments, mergedEnvironment(environment), count: Stream.allCases.count,
            inheriting: inherited)
        let end = try Bell()
        try startThread { [state, pid] in
            collect(Array(zip(Stream.allCases, outputs)), of: pid, until: end, into: state)
        }
        try startThread { [pid] in
            waitForEnd(of: pid)
            end.ring()
        }
    }

    deinit {
        signal(SIGKILL)
    }

    /// Runs a program to its end.
    package static func run(
        _ executable: String, _ arguments: [String] = [], environment: [String: String?] = [:],
        within patience: Duration = .patience
    ) throws -> Outcome {
        let child = try ChildProcess(executable, arguments, environment: environment)
        let exit = try child.waitForExit(within: patience)
        return Outcome(exit: exit, stdout: child.stdout, stderr: child.stderr)
    }

    /// All that it has written to standard output until now.
    package var stdout: String { state.read { $0.text(.stdout) } }

    /// All that it has written to standard error until now.
    package var stderr: String { state.read { $0.text(.stderr) } }

    /// How it ended, or `nil` while it runs. Once this is known, all that it has written itself is there.
    package var exit: Exit? { state.read(\.exit) }

    /// Waits until `stream` has a line that contains `text`, and returns the first such line, without its newline.
    /// - Throws: `DeadlinePassed` with the output, also as soon as the stream has ended without the line.
    @discardableResult
    package func waitForLine(
        containing text: String, on stream: Stream = .stdout, within patience: Duration = .patience
    ) throws -> String {
        try waitForLine("a line with \"\(text)\"", on: stream, within: patience) { $0.contains(text) }
    }

    /// Waits until `stream` has a line that `matches`; `what` describes it.
    /// - Throws: `DeadlinePassed` with the output, also as soon as the stream has ended without the line.
    @discardableResult
    package func waitForLine(
        _ what: String, on stream: Stream = .stdout, within patience: Duration = .patience, _ matches: (String) -> Bool
    ) throws -> String {
        try describingOutput {
            try state.wait(for: "\(what) from \(name)", within: patience) { state in
                if let line = state.lines(stream).first(where: matches) { return line }
                if state.openStreams.contains(stream) { return nil }
                throw DeadlinePassed(what: "\(what) from \(name), whose \(stream) has ended")
            }
        }
    }

    /// Waits until it has ended and, unless told otherwise, its output too (a child of its own may hold that open).
    @discardableResult
    package func waitForExit(andOutput: Bool = true, within patience: Duration = .patience) throws -> Exit {
        try describingOutput {
            try state.wait(for: "\(name) to end", within: patience) {
                andOutput && !$0.openStreams.isEmpty ? nil : $0.exit
            }
        }
    }

    /// Sends the signal, unless it has ended: its pid may be another's by then.
    package func signal(_ number: Int32) {
        state.read { if $0.exit == nil { kill(pid, number) } }
    }

    /// Sends SIGTERM and waits for the end.
    @discardableResult
    package func terminate() throws -> Exit {
        signal(SIGTERM)
        return try waitForExit(andOutput: false)
    }

    /// Sends SIGKILL and waits for the end.
    @discardableResult
    package func killNow() throws -> Exit {
        signal(SIGKILL)
        return try waitForExit(andOutput: false)
    }

    private func describingOutput<T>(_ body: () throws -> T) throws -> T {
        do {
            return try body()
        } catch var error as DeadlinePassed {
            error.instead = "stdout: \(stdout)\nstderr: \(stderr)\nexit: \(exit.map { "\($0)" } ?? "running")"
            throw error
        }
    }
}

func mergedEnvironment(_ changes: [String: String?]) -> [String] {
    var environment = ProcessInfo.processInfo.environment
    for (name, value) in changes { environment[name] = value }
    return environment.map { "\($0)=\($1)" }
}

/// Held from the making of a child's pipes until it runs: glibc gives Swift no `pipe2`, and another child started
/// between `pipe` and `fcntl` would hold the pipe open.
private let spawning = Mutex(())

/// Starts the program with a pipe on each of the descriptors 1 to `count`, and returns the ends to read.
private func spawnWithPipes(
    _ arguments: [String], _ environment: [String], count: Int, inheriting inherited: (descriptor: Int32, as: Int32)?
) throws -> (pid_t, [Int32]) {
    try spawning.withLock { _ in
        let pipes = try (0..<count).map { _ in try Pipe.make() }
        defer { for pipe in pipes { close(pipe.writeEnd) } }
        do {
            let pid = try spawn(arguments, environment, outputs: pipes.map(\.writeEnd), inheriting: inherited)
            return (pid, pipes.map(\.readEnd))
        } catch {
            for pipe in pipes { close(pipe.readEnd) }
            throw error
        }
    }
}

/// Starts the program with descriptors 1, 2, … from `outputs`, default signal handling and nothing blocked.
private func spawn(
    _ arguments: [String], _ environment: [String], outputs: [Int32],
    inheriting inherited: (descriptor: Int32, as: Int32)?
) throws -> pid_t {
    try spawn(arguments, environment, flags: 0) { actions in
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        for (index, output) in outputs.enumerated() {
            posix_spawn_file_actions_adddup2(&actions, output, Int32(index + 1))
        }
        if let inherited { posix_spawn_file_actions_adddup2(&actions, inherited.descriptor, inherited.as) }
    }
}

/// Starts the program as the leader of a session, with this terminal for everything: the first that such a leader opens
/// is its own.
func spawn(_ arguments: [String], _ environment: [String], terminal: String) throws -> pid_t {
    try spawn(arguments, environment, flags: spawnsSession) { actions in
        posix_spawn_file_actions_addopen(&actions, 0, terminal, O_RDWR, 0)
        for descriptor in 1...2 { posix_spawn_file_actions_adddup2(&actions, 0, Int32(descriptor)) }
    }
}

/// POSIX_SPAWN_SETSID of glibc, which declares it only with _GNU_SOURCE.
private let spawnsSession: Int16 = 0x80

private func spawn(
    _ arguments: [String], _ environment: [String], flags: Int16, _ open: (inout posix_spawn_file_actions_t) -> Void
) throws -> pid_t {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    open(&actions)
    var attributes = defaultSignals(flags)
    defer { posix_spawnattr_destroy(&attributes) }
    let argv = CStrings(arguments), envp = CStrings(environment)
    var pid = pid_t()
    let code = posix_spawn(&pid, arguments[0], &actions, &attributes, argv.pointers, envp.pointers)
    guard code == 0 else { throw SystemError("start \(arguments[0])", code) }
    return pid
}

private func defaultSignals(_ flags: Int16) -> posix_spawnattr_t {
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    var signals = sigset_t()
    sigemptyset(&signals)
    posix_spawnattr_setsigmask(&attributes, &signals)
    sigaddset(&signals, SIGPIPE)
    posix_spawnattr_setsigdefault(&attributes, &signals)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF) | flags)
    return attributes
}

/// A null-terminated array of C strings that lives as long as this object.
private final class CStrings {
    let pointers: [UnsafeMutablePointer<CChar>?]

    init(_ strings: [String]) {
        pointers = strings.map { strdup($0) } + [nil]
    }

    deinit {
        for pointer in pointers { free(pointer) }
    }
}

/// Reads what a program and its children write, until nobody has its streams open any more.
///
/// The program's end is told when what it has written before has been read: the kernel has both at once, but these
/// would be two threads.
private func collect(
    _ streams: [(stream: ChildProcess.Stream, descriptor: Int32)], of pid: pid_t, until end: Bell,
    into state: Monitor<ChildProcess.State>
) {
    var open = streams
    var hasEnded = false
    while !open.isEmpty || !hasEnded {
        var polled = open.map { pollfd(fd: $0.descriptor, events: Int16(POLLIN), revents: 0) }
        if !hasEnded { polled.append(pollfd(fd: end.descriptor, events: Int16(POLLIN), revents: 0)) }
        _ = try? retryingInterrupts("poll") { poll(&polled, nfds_t(polled.count), -1) }
        let isAtEnd = !hasEnded && polled.last?.revents != 0
        // What was not readable yet when poll looked may be by now.
        if isAtEnd { _ = poll(&polled, nfds_t(polled.count), 0) }
        let readable = zip(open, polled).filter { $1.revents != 0 }.map(\.0)
        for (stream, descriptor) in readable where !takePiece(stream, descriptor, into: state) {
            open.removeAll { $0.descriptor == descriptor }
        }
        if isAtEnd, readable.isEmpty {
            hasEnded = true
            // Only under the lock, so that `signal` never meets a reused one.
            state.update { $0.exit = takeBack(pid) }
        }
    }
}

/// - Returns: false at the stream's end.
private func takePiece(_ stream: ChildProcess.Stream, _ descriptor: Int32, into state: Monitor<ChildProcess.State>)
    -> Bool
{
    var buffer = [UInt8](repeating: 0, count: 16 * 1024)
    if let count = try? retryingInterrupts("read", { read(descriptor, &buffer, buffer.count) }), count > 0 {
        state.update { $0.output[stream, default: []].append(contentsOf: buffer[..<count]) }
        return true
    }
    close(descriptor)
    state.update { _ = $0.openStreams.remove(stream) }
    return false
}

/// Leaves it as it is.
func waitForEnd(of pid: pid_t) {
    var info = siginfo_t()
    _ = try? retryingInterrupts("waitid") { waitid(P_PID, id_t(pid), &info, WEXITED | WNOWAIT) }
}

/// How a program ended that has.
func takeBack(_ pid: pid_t) -> ChildProcess.Exit {
    var status: Int32 = 0
    waitpid(pid, &status, 0)
    return status & 0x7F == 0 ? .exited((status >> 8) & 0xFF) : .signalled(status & 0x7F)
}
