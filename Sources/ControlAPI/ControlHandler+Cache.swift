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

/// `{"max_size": 5000000000, "min_free": "1GB"}`; either may be missing.
struct LimitChange: ReceivedValue {
    static let example = "{\"max_size\": \"20GB\"}"
    let maxSize: Int64?
    let minFree: Int64?

    private enum CodingKeys: String, CodingKey, CaseIterable {
        case maxSize, minFree
    }

    init(from decoder: any Decoder) throws {
        try decoder.refuseMembers(except: CodingKeys.allCases.map(\.stringValue))
        let members = try decoder.container(keyedBy: CodingKeys.self)
        maxSize = try members.decodeIfThere(ReceivedSize.self, forKey: .maxSize)?.bytes
        minFree = try members.decodeIfThere(ReceivedSize.self, forKey: .minFree)?.bytes
        guard maxSize != nil || minFree != nil else {
            throw ControlError(422, "nothing to change: give max_size, min_free or both")
        }
    }
}
