import CLinux
import Glibc
import Synchronization

/// Which files may hold blocks that no row speaks of: those that are written, evicted or removed. They are named in a
/// file before that begins, so that after a kill only these are looked at, however many there are. (A kill loses
/// nothing that was written to a file; a power cut may, and is followed by a look at all.)
///
/// Records of eight bytes: identifiers of generations.
final class UnfinishedFiles: Sendable {
    let path: String
    private let state: Mutex<State>

    private struct State {
        var descriptor: Int32
        var count = 0
        /// Names that were written by somebody who has not yet made the file known.
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
        // A disk that is full must not keep anything from being evicted. Where room cannot be taken in advance, it will
        // be found or not.
        _ = fallocate(descriptor, reel_falloc_keep_size, 0, off_t(2 * longest * 8))
        return descriptor
    }

    /// What an earlier session left.
    static func read(_ path: String) -> Set<GenerationID> {
        let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return [] }
        defer { Glibc.close(descriptor) }
        var found: Set<GenerationID> = []
        var buffer = [UInt64](repeating: 0, count: 4096)
        while true {
            let count = buffer.withUnsafeMutableBytes { Glibc.read(descriptor, $0.baseAddress, $0.count) }
            // A record that was cut off names nothing.
            guard count >= 8 else { return found }
            for value in buffer[..<(count / 8)] where value > 0 && value <= UInt64(Int64.max) {
                found.insert(GenerationID(value: UInt64(littleEndian: value)))
            }
        }
    }

    /// Names files before anything is done to them that the index does not know.
    func add(_ ids: [GenerationID]) throws(StoreError) {
        let records = ids.map { $0.value.littleEndian }
        let error: StoreError? = state.withLock { state in
            let written = records.withUnsafeBytes { write(state.descriptor, $0.baseAddress, $0.count) }
            guard written == records.count * 8 else { return .lastSystemError("write", path) }
            state.count += records.count
            return nil
        }
        if let error { throw error }
    }

    /// Names files; `end` when the store knows of itself that they are unfinished.
    func begin(_ ids: [GenerationID]) throws(StoreError) {
        state.withLock { $0.beginning += 1 }
        do { try add(ids) } catch {
            end()
            throw error
        }
    }

    func end() { state.withLock { $0.beginning -= 1 } }

    /// Whether the list is long enough to be worth writing anew.
    var isLong: Bool { state.withLock { $0.count > Self.longest && $0.beginning == 0 } }

    /// A start looks at so many in a moment.
    private static let longest = 4096

    /// Leaves only those that are still unfinished.
    /// - Parameter unfinished: asked while nothing is added.
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

    var allocatedBytes: Int64 { FileSystem.allocatedBytes(path) }
}
