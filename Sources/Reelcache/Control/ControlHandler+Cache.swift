import ControlAPI
import DiskCache
import Foundation
import HTTPTransport

extension ControlHandler {
    func report(_ exchange: Exchange) {
        answer(exchange) { try $0.report() }
    }

    /// The new limits are in force before the response is sent.
    func changeLimits(_ exchange: Exchange) {
        receiveJSON(LimitChange.self, exchange) { [self] change in
            answer(exchange) { store in
                try store.setLimits(maxSize: change.maxSize, minFree: change.minFree)
                return try store.report()
            }
        }
    }
}
