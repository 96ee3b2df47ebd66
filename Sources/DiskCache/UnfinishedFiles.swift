import CLinux
import Glibc
import Synchronization

/// A list of files that may have blocks which no row describes: those being written, evicted or removed. A file is
/// listed before that begins, so that after a crash only listed files have to be examined, however many there are. (A
/// crash of the process loses nothing that was written; a power cut may, so all files are examined after one.)
///
/// The list has records of eight bytes: generation IDs.
final class UnfinishedFiles: Sendable {
    let path: String
    private let state: Mutex<State>

    private struct State {
        var descriptor: Int32
        var count = 0
        /// Calls of `begin` without their `end`.
        var beginning = 0
    }

    init(path: String) throws(StoreError) {
        self.path = path
        state = Mutex(State(descriptor: try Self.open(path, O_APPEND)))
    }

    deinit { state.withLock { _ = Glibc.close($0.descriptor) } }

    private static func open(_ path: String, _ flags: Int32) throws(StoreError) -> Int32 {
        let descriptor = Glibc.open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0o600)
        guard descriptor >= 0 else { throw .lastSystemError("open", path) }
        // Reserve space, because a full disk must not prevent evictions. If that fails, a write may still succeed.
        _ = fallocate(descriptor, reel_falloc_keep_size, 0, off_t(2 * longest * 8))
        return descriptor
    }

    /// Reads the list of an earlier session.
    static func read(_ path: String) -> Set<GenerationID> {
        let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return [] }
        defer { Glibc.close(descriptor) }
        var found: Set<GenerationID> = []
        var buffer = [UInt64](repeating: 0, count: 4096)
        while true {
            let count = buffer.withUnsafeMutableBytes { Glibc.read(descriptor, $0.baseAddress, $0.count) }
            // A truncated record names nothing.
            guard count >= 8 else { return found }
            for value in buffer[..<(count / 8)] where value > 0 && value <= UInt64(Int64.max) {
                found.insert(GenerationID(value: UInt64(littleEndian: value)))
            }
        }
    }

    /// Lists files before anything is done to them that the index does not know.
    func add(_ ids: [GenerationID]) throws(StoreError) { try add(ids, thenBeginning: false) }

    private func add(_ ids: [GenerationID], thenBeginning begins: Bool) throws(StoreError) {
        let records = ids.map { $0.value.littleEndian }
        let error: StoreError? = state.withLock { state in
            let written = records.withUnsafeBytes { write(state.descriptor, $0.baseAddress, $0.count) }
            guard written == records.count * 8 else { return .lastSystemError("write", path) }
            state.count += records.count
            if begins { state.beginning += 1 }
            return nil
        }
        if let error { throw error }
    }

    /// Lists files. Call `end` once the store itself knows that they are unfinished.
    func begin(_ ids: [GenerationID]) throws(StoreError) { try add(ids, thenBeginning: true) }

    func end() { state.withLock { $0.beginning -= 1 } }

    /// Whether the list is long enough to be worth rewriting.
    var isLong: Bool { state.withLock { $0.count > Self.longest && $0.beginning == 0 } }

    /// A start examines this many files in a moment.
    private static let longest = 4096

    /// Rewrites the list with the files that are still unfinished.
    /// - Parameter unfinished: called while nothing can be added.
    func shorten(to unfinished: () -> Set<GenerationID>) throws(StoreError) {
        let error: StoreError? = state.withLock { state in
            guard state.beginning == 0 else { return nil }
            let records = unfinished().map { $0.value.littleEndian }
            do throws(StoreError) {
                let next = try Self.open(path + ".new", O_TRUNC | O_APPEND)
                guard records.withUnsafeBytes({ write(next, $0.baseAddress, $0.count) }) == records.count * 8 else {
                    defer { Glibc.close(next) }
                    throw .lastSystemError("write", path + ".new")
                }
                do throws(StoreError) { try FileSystem.rename(path + ".new", to: path) } catch {
                    Glibc.close(next)
                    throw error
                }
                Glibc.close(state.descriptor)
                state.descriptor = next
                state.count = records.count
                return nil
            } catch { return error }
        }
        if let error { throw error }
    }
}
