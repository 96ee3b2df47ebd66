import CachePolicy
import ControlAPI
import HTTPTransport

extension ControlHandler {
    /// Has the next item downloaded when the named one was played. The proxy remembers a few until it ends.
    func prefetchNext(_ exchange: Exchange) {
        receiveJSON(WantedItem.self, exchange) { [self] item in
            answer(exchange) { [wantNext] _ in
                wantNext(item.url)
                return item
            }
        }
    }
}
