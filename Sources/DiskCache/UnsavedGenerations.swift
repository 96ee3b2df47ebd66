import Synchronization

/// Generations with chunks that the index does not know yet. They stay open until these are saved. Can be used from any
/// thread.
final class UnsavedGenerations: Sendable {
    private let state = Mutex(State())

    private struct State {
        var generations: [GenerationID: Generation] = [:]
        var bytes: Int64 = 0
        var isCheckpointDue = false
    }

    /// - Parameters:
    ///   - bytes: the number of bytes just written.
    ///   - limit: a checkpoint is due from this many bytes on.
    /// - Returns: whether the caller has to start a checkpoint.
    func add(_ generation: Generation, bytes: Int64 = 0, limit: Int64 = .max) -> Bool {
        state.withLock { state in
            state.generations[generation.id] = generation
            state.bytes += bytes
            guard state.bytes >= limit, !state.isCheckpointDue else { return false }
            state.isCheckpointDue = true
            return true
        }
    }

    /// Begins a checkpoint: generations added from now on belong to the next one.
    func take() -> [GenerationID: Generation] {
        state.withLock { state in
            defer { state = State() }
            return state.generations
        }
    }

    func remove(_ id: GenerationID) { _ = state.withLock { $0.generations.removeValue(forKey: id) } }

    var ids: Set<GenerationID> { state.withLock { Set($0.generations.keys) } }
}
