import CacheFill
import CachePolicy
import DiskCache
import EventIO
import HTTPModel
import Playlists

/// Reads a playlist as a whole into memory, and what it says on another thread. One for all on its loop who wait for
/// it. Loop-bound.
final class PlaylistReading {
    private let generation: Generation
    private let key: CacheKey
    private let url: OriginURL
    private let variables: [String: String]?
    private let reader: CacheReader
    private let loop: LoopFiller
    private var bytes: [UInt8]
    private var onEnd: ((PlaylistLibrary.Outcome) -> Void)?
    /// A text of so many bytes is read in the time that it takes to wake another thread.
    private static let shortBytes = 16 << 10

    /// - Parameters:
    ///   - key: of the document.
    ///   - reader: of the whole, which has given `beginning`; it is finished here.
    ///   - variables: what the playlist may import.
    init(
        _ generation: Generation, as key: CacheKey, at url: OriginURL, by reader: CacheReader,
        after beginning: [UInt8], on loop: LoopFiller, importing variables: [String: String]?
    ) {
        (self.generation, self.key, self.url, self.variables) = (generation, key, url, variables)
        (self.reader, self.loop, bytes) = (reader, loop, beginning)
    }

    /// - Parameter end: called once, perhaps before this returns.
    func start(_ end: @escaping (PlaylistLibrary.Outcome) -> Void) {
        onEnd = end
        reader.onReady = { [self] in goOn() }
        goOn()
    }

    private func goOn() {
        while onEnd != nil {
            switch reader.next(limit: 256 << 10) {
            case .bytes(let piece, _, _):
                // Memory follows what has come, up to the limit, and not what was announced.
                guard bytes.count + piece.count <= PlaylistLimits.bytes else {
                    return end(.refused(bytes, "it is longer than \(PlaylistLimits.bytes >> 20) MiB"))
                }
                bytes += piece
            case .wait: return
            case .end: return read()
            case .failed(let error): return end(.failed(error))
            }
        }
    }

    private func read() {
        reader.finish()
        let (bytes, fields, key, id) = (bytes, generation.head.fields, key, generation.id)
        let base = (try? OriginURL(url: generation.head.finalURL)) ?? url
        let (url, variables) = (url, variables)
        let parse: @Sendable () -> PlaylistLibrary.Outcome = {
            do {
                let text = try ContentCoding.decoded(bytes, fields)
                return .document(
                    try PlaylistDocument(
                        text, key: key, url: url, base: base, generation: id, importing: variables))
            } catch { return .refused(bytes, PlaylistLibrary.reason(error)) }
        }
        guard bytes.count > Self.shortBytes else { return end(parse()) }
        let bound = LoopBound(self, on: loop.loop)
        let isRun = loop.filler.store.perform {
            let outcome = parse()
            bound.post { $0.end(outcome) }
        }
        if !isRun { end(.failed(.offline)) }
    }

    private func end(_ outcome: PlaylistLibrary.Outcome) {
        guard let tell = onEnd else { return }
        onEnd = nil
        reader.finish()
        tell(outcome)
    }
}
