import CachePolicy
import DiskCache
import Foundation
import HTTPTransport

extension ControlHandler {
    func report(_ exchange: Exchange) {
        answer(exchange) { try $0.report() }
    }

    /// The new limits hold when the answer goes out.
    func changeLimits(_ exchange: Exchange) {
        receiveJSON(LimitChange.self, exchange) { [self] change in
            answer(exchange) { store in
                try store.setLimits(maxSize: change.maxSize, minFree: change.minFree)
                return try store.report()
            }
        }
    }
}

/// `{"max_size": 5000000000, "min_free": "1GB"}`, one of them or both.
struct LimitChange: Decodable, Sendable {
    let maxSize: Int64?
    let minFree: Int64?

    private enum CodingKeys: String, CodingKey, CaseIterable {
        case maxSize, minFree
    }

    init(from decoder: any Decoder) throws {
        try decoder.refuseMembers(except: CodingKeys.allCases.map(\.stringValue))
        let members = try decoder.container(keyedBy: CodingKeys.self)
        maxSize = try members.decodeIfThere(Size.self, forKey: .maxSize)?.bytes
        minFree = try members.decodeIfThere(Size.self, forKey: .minFree)?.bytes
        guard maxSize != nil || minFree != nil else { throw ControlError(422, "nothing to change: give max_size, min_free or both") }
    }

    /// A number of bytes, or a size as people write it.
    private struct Size: Decodable {
        let bytes: Int64

        init(from decoder: any Decoder) throws {
            let value = try decoder.singleValueContainer()
            let size = (try? value.decode(Int64.self)) ?? (try? value.decode(String.self)).flatMap { ByteSize($0)?.bytes }
            guard let size, size >= 0 else {
                let name = ControlJSON.snakeCase(decoder.codingPath.last?.stringValue ?? "the size")
                throw ControlError(422, "\(name) is a number of bytes, or a size such as \"20GB\"")
            }
            bytes = size
        }
    }
}
