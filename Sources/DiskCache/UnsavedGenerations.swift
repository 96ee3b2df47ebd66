import Synchronization

/// Generations with chunks that the index does not know yet. They are kept until these are saved. From any thread.
final class UnsavedGenerations: Sendable {
    private let state = Mutex(State())

    private struct State {
        var generations: [GenerationID: Generation] = [:]
        var bytes: Int64 = 0
        var isCheckpointDue = false
    }

    /// - Parameters:
    ///   - bytes: what has just come of it.
    ///   - limit: from how many bytes on a checkpoint is due.
    /// - Returns: whether the caller has to see to a checkpoint.
    func add(_ generation: Generation, bytes: Int64 = 0, limit: Int64 = .max) -> Bool {
        state.withLock { state in
            state.generations[generation.id] = generation
            state.bytes += bytes
            guard state.bytes >= limit, !state.isCheckpointDue else { return false }
            state.isCheckpointDue = true
            return true
        }
    }

    /// Begins a checkpoint: what comes from here on is the next one's.
    func take() -> [GenerationID: Generation] {
        state.withLock { state in
            defer { state = State() }
            return state.generations
        }
    }

    func remove(_ id: GenerationID) { _ = state.withLock { $0.generations.removeValue(forKey: id) } }

    var ids: Set<GenerationID> { state.withLock { Set($0.generations.keys) } }
}
