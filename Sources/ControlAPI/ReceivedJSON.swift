import Foundation
import HTTPTransport

extension ControlHandler {
    /// No change takes more.
    private static let maxJSONBytes = 64 << 10

    /// Reads the body as JSON; what is none is answered.
    func receiveJSON<Value: Decodable>(_ type: Value.Type, _ exchange: Exchange, then: @escaping (Value) -> Void) {
        exchange.readBody(upTo: Self.maxJSONBytes) { result in
            do {
                let body = try result.get()
                try JSONDecoder().decode(MemberNames.self, from: Data(body)).check()
                then(try ControlJSON.decode(type, from: body))
            } catch BodyFault.disconnected {
            } catch BodyFault.refused(let fault) {
                exchange.respond(ControlError(fault.status, fault.reason))
            } catch let error as ControlError {
                exchange.respond(error)
            } catch {
                exchange.respond(ControlError(400, "the body is not what belongs here; send a JSON object such as {\"pinned\": true} or {\"max_size\": \"20GB\"}"))
            }
        }
    }
}

/// The names of an object's members, as they were sent.
private struct MemberNames: Decodable {
    let names: [String]

    init(from decoder: any Decoder) throws { names = try decoder.container(keyedBy: AnyKey.self).allKeys.map(\.stringValue) }

    /// A second spelling would be one that another version need not know.
    func check() throws(ControlError) {
        guard let name = names.filter({ !ControlJSON.isWellSpelt($0) }).sorted().first else { return }
        throw ControlError(422, "there is no member \(name.prefix(100)) here: names are written in small letters, such as max_size")
    }
}

extension Decoder {
    /// A misspelt member must not be taken for a missing one.
    func refuseMembers(except known: [String]) throws {
        let members = try container(keyedBy: AnyKey.self).allKeys.map(\.stringValue)
        guard let unknown = members.filter({ !known.contains($0) }).sorted().first else { return }
        let names = known.map(ControlJSON.snakeCase).joined(separator: " and ")
        throw ControlError(422, "there is no member \(ControlJSON.snakeCase(String(unknown.prefix(100)))) here, but \(names)")
    }
}

extension KeyedDecodingContainer {
    /// `null` is a value like any other, and a wrong one; `decodeIfPresent` would pass it over.
    func decodeIfThere<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value? {
        contains(key) ? try decode(type, forKey: key) : nil
    }
}

private struct AnyKey: CodingKey {
    let stringValue: String
    let intValue: Int? = nil

    init?(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
}
