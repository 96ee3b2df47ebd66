import CachePolicy
import Foundation
import HTTPTransport
import Units

/// What a request's body can be: an object all of whose members are known.
protocol ReceivedValue: Decodable, Sendable {
    /// One that would do.
    static var example: String { get }
}

extension ControlHandler {
    /// No change takes more.
    private static let maxJSONBytes = 64 << 10

    /// Reads the body as JSON; what is none is answered.
    func receiveJSON<Value: ReceivedValue>(_ type: Value.Type, _ exchange: Exchange, then: @escaping (Value) -> Void) {
        receiveBody(exchange, upTo: Self.maxJSONBytes) { body in
            do throws(ControlError) { then(try ReceivedJSON.decode(type, from: body)) } catch {
                exchange.respond(error)
            }
        }
    }

    /// Reads the body; what is none is answered.
    func receiveBody(_ exchange: Exchange, upTo limit: Int, then: @escaping ([UInt8]) -> Void) {
        exchange.readBody(upTo: limit) { result in
            do throws(BodyFault) { then(try result.get()) } catch {
                if case .refused(let fault) = error { exchange.respond(ControlError(fault.status, fault.reason)) }
            }
        }
    }
}

enum ReceivedJSON {
    static func decode<Value: ReceivedValue>(_ type: Value.Type, from body: [UInt8]) throws(ControlError) -> Value {
        do {
            try JSONDecoder().decode(MemberNames.self, from: Data(body)).check()
            return try ControlJSON.decode(type, from: body)
        } catch let error as ControlError {
            throw error
        } catch {
            throw ControlError(400, "the body is not what belongs here; send a JSON object such as \(Value.example)")
        }
    }
}

/// The names of an object's members, and of those of the objects that are listed in it, as they were sent.
private struct MemberNames: Decodable {
    private let names: [String]
    private let listed: [MemberNames]

    init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: AnyKey.self)
        names = members.allKeys.map(\.stringValue)
        // The one list of objects that there is.
        listed =
            try AnyKey(stringValue: "downloads").map {
                members.contains($0) ? try members.decode([MemberNames].self, forKey: $0) : []
            } ?? []
    }

    /// A second spelling would be one that another version need not know.
    func check() throws(ControlError) {
        for members in listed { try members.check() }
        guard let name = names.filter({ !ControlJSON.isWellSpelt($0) }).sorted().first else { return }
        throw ControlError(
            422, "there is no member \(name.prefix(100)) here: names are written in small letters, such as max_size")
    }
}

/// A number of bytes, or a size as people write it.
struct ReceivedSize: Decodable {
    let bytes: Int64

    init(from decoder: any Decoder) throws {
        let value = try decoder.singleValueContainer()
        let size = (try? value.decode(Int64.self)) ?? (try? value.decode(String.self)).flatMap { ByteSize($0)?.bytes }
        guard let size, size >= 0 else {
            throw ControlError(422, "\(decoder.place ?? "the size") is a number of bytes, or a size such as \"20GB\"")
        }
        bytes = size
    }
}

/// A number of seconds, or a length of time as people write it.
struct ReceivedSpan: Decodable {
    let seconds: Int64

    init(from decoder: any Decoder) throws {
        let value = try decoder.singleValueContainer()
        let seconds =
            (try? value.decode(Int64.self)) ?? (try? value.decode(String.self)).flatMap { TimeSpan($0)?.seconds }
        guard let seconds, seconds > 0 else {
            throw ControlError(422, "\(decoder.place ?? "it") is a number of seconds, or a time such as \"30m\"")
        }
        self.seconds = seconds
    }
}

extension Decoder {
    /// Where in what was sent, such as `downloads[2].first`; nil for the whole.
    var place: String? { codingPath.isEmpty ? nil : codingPath.place }

    /// A misspelt member must not be taken for a missing one.
    func refuseMembers(except known: [String]) throws {
        let members = try container(keyedBy: AnyKey.self).allKeys.map(\.stringValue)
        guard let unknown = members.filter({ !known.contains($0) }).sorted().first else { return }
        let names = known.map(ControlJSON.snakeCase).joined(separator: " and ")
        throw ControlError(
            422,
            "there is no member \(ControlJSON.snakeCase(String(unknown.prefix(100)))) \(place.map { "in \($0)" } ?? "here"), but \(names)"
        )
    }
}

extension KeyedDecodingContainer {
    /// `null` is a value like any other, and a wrong one; `decodeIfPresent` would pass it over.
    func decodeIfThere<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value? {
        contains(key) ? try decode(type, forKey: key) : nil
    }

    /// - Parameter form: what the member is, for whoever has sent something else.
    func decodeIfThere<Value: Decodable>(
        _ type: Value.Type, forKey key: Key, form: String, _ isGood: (Value) -> Bool = { _ in true }
    ) throws -> Value? {
        guard contains(key) else { return nil }
        guard let value = try? decode(type, forKey: key), isGood(value) else {
            throw ControlError(422, "\((codingPath + [key]).place) is \(form)")
        }
        return value
    }
}

extension [any CodingKey] {
    fileprivate var place: String {
        reduce("") { text, key in
            if let index = key.intValue { return text + "[\(index)]" }
            return text + (text.isEmpty ? "" : ".") + ControlJSON.snakeCase(key.stringValue)
        }
    }
}

private struct AnyKey: CodingKey {
    let stringValue: String
    let intValue: Int? = nil

    init?(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
}
