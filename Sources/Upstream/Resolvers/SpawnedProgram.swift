import CLinux
import Glibc
import HTTPModel

/// A program that runs in a process group of its own, without a shell, with nothing open but its output. Belongs to one
/// thread, which must call `collect` once.
struct SpawnedProgram: ~Copyable {
    /// Why a program cannot be started.
    struct StartError: Error, CustomStringConvertible {
        let description: String
    }

    /// How a program ended.
    enum Status: Equatable {
        case exited(Int32)
        case killed(Int32)
        /// Other code of this process has collected the status.
        case unknown
    }

    /// Why collecting ended.
    enum Reason {
        case ended, tooLong, timedOut, cancelled
    }

    struct End {
        let reason: Reason
        let status: Status
        let output: [UInt8]
        /// The end of what it wrote to its standard error.
        let errors: [UInt8]
    }

    private let pid: pid_t
    private let output: PipeEnd
    private let errors: PipeEnd

    /// - Parameter words: the program, by path or by its name in `PATH`, and its arguments.
    init(_ words: [String], environment: [String: String]) throws(StartError) {
        let output = try PipeEnd.pair()
        let errors: (read: Int32, write: Int32)
        do { errors = try PipeEnd.pair() } catch {
            close(output.read)
            close(output.write)
            throw error
        }
        defer { for pair in [output, errors] { close(pair.write) } }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, output.write, STDOUT_FILENO)
        posix_spawn_file_actions_adddup2(&actions, errors.write, STDERR_FILENO)
        // Connections and cache files are none of its business.
        posix_spawn_file_actions_addclosefrom_np(&actions, 3)
        posix_spawn_file_actions_addchdir_np(&actions, "/")
        var attributes = Self.attributes()
        defer { posix_spawnattr_destroy(&attributes) }
        let arguments = Self.copies(words), variables = Self.copies(environment.map { "\($0.key)=\($0.value)" })
        defer { for text in arguments + variables { free(text) } }
        var pid = pid_t()
        let code = ResolverEnvironment.find(words[0], in: environment["PATH"] ?? "").map {
            posix_spawn(&pid, $0, &actions, &attributes, arguments, variables)
        }
        guard code == 0 else {
            for pair in [output, errors] { close(pair.read) }
            throw StartError(description: code.map { String(errno: $0) } ?? "it is not in PATH")
        }
        self.pid = pid
        (self.output, self.errors) = (PipeEnd(output.read), PipeEnd(errors.read))
    }

    /// A session of its own, and so a group of its own: it ends with its children, and cannot ask on the terminal of the
    /// proxy, where nobody answers. None of the signals that this process blocks or ignores.
    private static func attributes() -> posix_spawnattr_t {
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        var signals = sigset_t()
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        for number in [SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD] { sigaddset(&signals, number) }
        posix_spawnattr_setsigdefault(&attributes, &signals)
        posix_spawnattr_setflags(
            &attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF) | newSession)
        return attributes
    }

    /// `POSIX_SPAWN_SETSID`, which the header hides from Swift.
    private static let newSession: Int16 = 0x80

    /// C strings, ended by a null pointer.
    private static func copies(_ texts: [String]) -> [UnsafeMutablePointer<CChar>?] { texts.map { strdup($0) } + [nil] }

    // MARK: Collecting

    /// Reads its output until it has ended. Blocks.
    /// - Parameters:
    ///   - limit: the longest output in bytes; a longer one ends the program.
    ///   - seconds: the longest run.
    ///   - isCancelled: whether to end it early.
    consuming func collect(upTo limit: Int, within seconds: Double, isCancelled: () -> Bool) -> End {
        let deadline = Self.now + seconds
        var reason = Reason.ended
        var (text, complaints): ([UInt8], [UInt8]) = ([], [])
        while !hasEnded || output.isOpen && output.isReadable {
            guard !isCancelled() else { reason = .cancelled; break }
            guard Self.now < deadline else { reason = .timedOut; break }
            PipeEnd.wait(output, errors, milliseconds: Self.lookInterval)
            output.read(into: &text)
            errors.read(into: &complaints)
            guard text.count <= limit else { reason = .tooLong; break }
            if complaints.count > 2 * Self.longestErrors {
                complaints.removeFirst(complaints.count - Self.longestErrors)
            } // no trap: compared above
        }
        output.read(into: &text)
        errors.read(into: &complaints)
        let status = end(politely: reason != .ended)
        return End(
            reason: text.count > limit ? .tooLong : reason, status: status, output: text,
            errors: Array(complaints.suffix(Self.longestErrors)))
    }

    /// How often it is checked whether the program has ended, in milliseconds; output is noticed at once.
    private static let lookInterval: Int32 = 20
    /// In bytes.
    private static let longestErrors = 4096
    /// How long it may take to end when it is told to, in seconds.
    private static let farewell = 0.5

    /// Whether it has ended; its status is left for `end`, so that its group's number stays its own.
    private var hasEnded: Bool {
        var info = siginfo_t()
        // no trap: a process that was started has a positive number
        guard waitid(P_PID, id_t(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 else { return errno != EINTR }
        return info.si_signo == SIGCHLD
    }

    /// Ends the program with all that it has started.
    private func end(politely: Bool) -> Status {
        if politely {
            kill(-pid, SIGTERM) // no trap: positive
            let deadline = Self.now + Self.farewell
            while !hasEnded, Self.now < deadline { poll(nil, 0, Self.lookInterval) }
        }
        kill(-pid, SIGKILL) // no trap: positive
        var status: Int32 = 0
        while waitpid(pid, &status, 0) != pid {
            guard errno == EINTR else { return .unknown }
        }
        let signal = status & 0x7F
        return signal == 0 ? .exited((status >> 8) & 0xFF) : .killed(signal)
    }

    /// In seconds, on a monotonic clock.
    private static var now: Double {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}

extension SpawnedProgram {
    /// The end of a pipe that is read; it is closed with the object.
    private final class PipeEnd {
        private let descriptor: Int32
        /// Whether more may come.
        private(set) var isOpen = true

        init(_ descriptor: Int32) { self.descriptor = descriptor }

        deinit { close(descriptor) }

        /// Neither end reaches other programs; reading does not block.
        static func pair() throws(SpawnedProgram.StartError) -> (read: Int32, write: Int32) {
            var ends: [Int32] = [-1, -1]
            guard reel_pipe(&ends) == 0 else { throw SpawnedProgram.StartError(description: String(errno: errno)) }
            _ = fcntl(ends[0], F_SETFL, O_NONBLOCK)
            return (ends[0], ends[1])
        }

        /// Takes in all that has arrived, at most 1 MiB.
        func read(into bytes: inout [UInt8]) {
            guard isOpen else { return }
            withUnsafeTemporaryAllocation(byteCount: 64 << 10, alignment: 1) { buffer in
                for _ in 0..<16 {
                    let count = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
                    guard count > 0 else {
                        isOpen = count < 0 && (errno == EAGAIN || errno == EINTR)
                        return
                    }
                    bytes.append(contentsOf: buffer[..<count])
                }
            }
        }

        /// Whether bytes wait to be read.
        var isReadable: Bool {
            var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            return poll(&entry, 1, 0) > 0 && entry.revents & Int16(POLLIN) != 0
        }

        /// Waits until one of them has something to read or is closed, or for this long.
        static func wait(_ one: PipeEnd, _ other: PipeEnd, milliseconds: Int32) {
            var entries = [one, other].filter(\.isOpen).map {
                pollfd(fd: $0.descriptor, events: Int16(POLLIN), revents: 0)
            }
            poll(&entries, nfds_t(entries.count), milliseconds) // no trap: at most two
        }
    }
}
