import CachePolicy
import DiskCache
import HTTPModel
import Playlists

/// Writes the playlists of a recording to the cache, and makes its segments parts of it. Blocks.
struct RecordingWriting: Sendable {
    let store: CacheStore
    /// Determines the cache key of a URL.
    let key: @Sendable (OriginURL) -> CacheKey
    let name: RecordingName
    /// The stream's first playlist, and its URL.
    let document: PlaylistDocument
    let url: OriginURL
    let isPinned: Bool
    /// Called at the end; false if the recording was stopped meanwhile.
    let isWanted: @Sendable () -> Bool

    /// What a recording knows of its writings, of which one runs at a time.
    struct State {
        /// The time of the last one, in nanoseconds of a clock that never goes back.
        var began: UInt64?
        var isRunning = false
        /// Whether the lists are nearly as long as ones that are read.
        var isFull = false
        /// The very last one, while another runs.
        var next: (() -> Void)?
        /// More frequent writing has little use. In nanoseconds.
        static let interval: UInt64 = 10_000_000_000
    }

    /// - Parameter isBegun: whether an earlier writing has made the whole a downloaded one, whose pin new parts share.
    /// - Returns: whether a list is nearly as long as one may be.
    func write(_ renditions: [RecordedRendition], isBegun: Bool) throws(PresentationFault) -> Bool {
        let renditions = renditions.filter { !$0.segments.isEmpty }
        guard !renditions.isEmpty else { return false }
        var isFull = false
        for rendition in renditions {
            let text = try RecordingText.media(rendition.segments, next: rendition.next)
            try take(text, at: name.url(of: rendition.url))
            isFull = isFull || RecordingText.isFull(text, segments: rendition.segments.count)
        }
        if case .hls(let playlist) = document.content, playlist.multivariant != nil {
            guard let text = RecordingText.multivariant(document, keeping: Set(renditions.map(\.url)), at: url, name)
            else {
                throw .notRecordable("nothing that can be played on its own has arrived yet")
            }
            try take(text, at: name.url(of: url))
        }
        do throws(StoreError) {
            for rendition in renditions {
                try store.commit([key(name.url(of: rendition.url))] + keys(of: rendition), partsOf: whole)
            }
            if !isBegun { try store.commit(whole: whole, isPinned: isPinned, isWanted: isWanted) }
        } catch { throw .cache("\(error)") }
        return isFull
    }

    private var whole: CacheKey { key(name.url(of: url)) }

    /// Of the segments that are not committed yet: there may be a week of the others.
    private func keys(of rendition: RecordedRendition) -> [CacheKey] {
        let new = rendition.segments.dropFirst(rendition.committed)
        var known: Set<PresentationItem> = []
        let companions = new.flatMap(\.companions).filter { known.insert($0).inserted }
        return companions.map { key($0.url) } + new.compactMap(\.url).map(key)
    }

    private func take(_ text: [UInt8], at url: OriginURL) throws(PresentationFault) {
        var fields = HeaderFields()
        fields.append("Content-Type", "application/vnd.apple.mpegurl")
        fields.append("Cache-Control", "max-age=31536000")
        do throws(ImportError) {
            let importer = try Importer(key(url), length: Int64(text.count), fields: fields, replaces: true, in: store)
            let result = text.withUnsafeBytes { bytes in
                Result { () throws(ImportError) in try importer.write(bytes) }
            }
            try result.get()
            _ = try importer.finish()
        } catch { throw .cache("the recording cannot be written: \(error)") }
    }
}
