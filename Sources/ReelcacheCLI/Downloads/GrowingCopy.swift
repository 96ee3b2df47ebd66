import Administration
import CachePolicy
import ControlAPI
import Downloads
import Foundation
import Reelcache
import Synchronization

/// A copy of a download, made in a file without a name while the download runs.
///
/// If it cannot be continued (the resource has a new version, the proxy does not offer this, the disk is full), it is
/// abandoned, and the file is copied when the download is complete.
final class GrowingCopy: Sendable {
    typealias Copied = (file: UnfinishedFile, method: FileExport.Method)

    enum End {
        case placed(Download, FilePlacement.Placed)
        /// The copy was abandoned, and the download has completed.
        case fallenBehind(Download)
        /// The copy was abandoned, and the download has not completed.
        case left
    }

    private let proxy: RunningProxy
    private let placement: FilePlacement
    private let state = Mutex(Phase.copying)
    private let changed = DispatchSemaphore(value: 0)

    private enum Phase {
        case copying
        /// The download has completed.
        case completed(Download)
        /// The copy is no longer wanted.
        case left
        /// The copy will place no file.
        case useless
    }

    init(_ proxy: RunningProxy, _ placement: FilePlacement) { (self.proxy, self.placement) = (proxy, placement) }

    /// The download has completed.
    /// - Returns: whether this copy will place the file.
    func complete(_ report: Download) -> Bool {
        let continues = state.withLock { phase in
            guard case .copying = phase else { return false }
            phase = .completed(report)
            return true
        }
        changed.signal()
        return continues
    }

    /// The download will not complete.
    func leave() {
        state.withLock { if case .copying = $0 { $0 = .left } }
        changed.signal()
    }

    private var isLeft: Bool { state.withLock { if case .left = $0 { true } else { false } } }

    /// Copies, waits for the download's end, and places the file. Blocks.
    /// - Parameter place: gives the complete copy its name.
    func run(
        _ url: OriginURL, isWanted: @escaping () -> Bool,
        _ place: @escaping (Download, LentFile, Copied) throws -> FilePlacement.Placed
    ) -> End {
        var placed: (Download, FilePlacement.Placed)?
        do {
            let file = try placement.begin()
            var source: Int32 = -1
            var done: Int64 = 0
            var method = FileExport.Method.copyFileRange
            defer { if source >= 0 { close(source) } }
            let continues = { isWanted() && !self.isLeft }
            try proxy.withGrowingFile(url, isWanted: continues) { lent, news in
                if source < 0 {
                    // Decoded as a whole, at the end.
                    guard lent.codings.isEmpty else { throw ControlError.interrupted }
                    source = try UnfinishedFile.open(lent.path)
                    // A file that can be cloned at the end need not be copied now.
                    guard try !file.clone(source, length: 0) else { throw ControlError.interrupted }
                }
                for range in news {
                    if try file.copy(from: source, range, isWanted: { _ in continues() }) == .copy { method = .copy }
                    file.startWriting(range)
                    done += Int64(range.count) // no trap: no byte is reported twice, nor one beyond the length
                }
                guard done >= lent.length else { return true }
                guard let report = self.awaitCompletion(isWanted) else { throw ControlError.interrupted }
                placed = (report, try place(report, lent, (file, method)))
                return false
            }
        } catch {
            // The file is copied again from the start; if that fails too, it is reported.
        }
        if let (report, placed) = placed { return .placed(report, placed) }
        return state.withLock { phase in
            defer { phase = .useless }
            if case .completed(let report) = phase { return .fallenBehind(report) }
            return .left
        }
    }

    private func awaitCompletion(_ isWanted: () -> Bool) -> Download? {
        while isWanted() {
            switch state.withLock({ $0 }) {
            case .completed(let report): return report
            case .left, .useless: return nil
            case .copying: _ = changed.wait(timeout: .now() + .milliseconds(250))
            }
        }
        return nil
    }
}
