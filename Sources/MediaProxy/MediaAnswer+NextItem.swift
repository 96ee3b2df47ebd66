import CacheFill
import CachePolicy
import DiskCache
import HTTPModel
import HTTPTransport
import Presentations

/// Notices when a player has read three quarters of an item: it was played, and the next one is fetched.
extension MediaAnswer {
    /// - Parameter start: the first byte of the answer.
    func beginItem(_ generation: Generation, at start: Int64, length: Int64?) {
        // Segments of a stream have read-ahead of their own. What is not stored has a next that is not stored either.
        guard !isAsStored, generation.isStored, membership == nil, generation.whole == nil else { return }
        // A page of another site must not choose what is downloaded or unpinned. `web_origins` names those that play
        // for the user.
        guard !Requester(request, handler.routes.webOrigins).isForeign else { return }
        reader?.isPlay = isPlay
        guard let length, handler.next.mayFollow(route.url, length: length, resolvedRule) else { return }
        item = handler.next.begin(
            route.url, resource.key, by: player, at: start, length: length)
        itemMark = item?.mark ?? .max
    }

    /// Whether the answer is played as it arrives. AntennaPod and others download and play under one name, but only
    /// their players send `Icy-MetaData`.
    private var isPlay: Bool {
        guard let play = exchange.follower as? LoopPlay, play.isDownload else { return true }
        return request.value(of: "Icy-MetaData") != nil
    }

    /// Reports what was delivered of the item so far.
    func noteItem(_ reader: CacheReader) {
        itemMark = .max
        if let item { handler.next.read(item, upTo: reader.offset, on: filler) }
    }
}
