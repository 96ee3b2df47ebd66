import CachePolicy
import Downloads
import Foundation
import HTTPModel

/// The JSON object in a request's body, all of whose members are known.
package protocol RequestBody: Codable, Sendable {
    /// A valid body, for the error message.
    static var example: String { get }
}

package enum ReceivedJSON {
    package static func decode<Value: RequestBody>(_ type: Value.Type, from body: [UInt8]) throws(ControlError) -> Value
    {
        do {
            try JSONDecoder().decode(MemberNames.self, from: Data(body)).check()
            return try ControlJSON.decode(type, from: body)
        } catch let error as ControlError {
            throw error
        } catch let error as DownloadError {
            throw ControlError(error)
        } catch {
            throw ControlError(400, "the body is invalid: send a JSON object such as \(Value.example)")
        }
    }
}

/// The names of an object's members as they were sent, including those of the objects listed in it.
private struct MemberNames: Decodable {
    private let names: [String]
    private let listed: [MemberNames]

    init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: BodyKey.self), listed = BodyKey("downloads")
        names = members.allKeys.map(\.stringValue)
        // The only list of objects in any body.
        self.listed = members.contains(listed) ? try members.decode([MemberNames].self, forKey: listed) : []
    }

    /// Refuses other spellings of a name, which another version might not accept.
    func check() throws(ControlError) {
        for members in listed { try members.check() }
        guard let name = names.filter({ !ControlJSON.isWellSpelt($0) }).sorted().first else { return }
        throw ControlError(
            422, "there is no member \(name.prefix(100)) here: names are in lower case, such as max_size")
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
    /// The place in the body, such as `downloads[2].first`; nil for the whole body.
    var place: String? { codingPath.isEmpty ? nil : codingPath.place }

    /// The members of an object. Refuses unknown ones, so that a misspelt member is not taken for a missing one.
    func members<Key: CodingKey & CaseIterable>(_ key: Key.Type) throws -> KeyedDecodingContainer<Key> {
        _ = try members(key.allCases.map { BodyKey($0.stringValue) })
        return try container(keyedBy: key)
    }

    /// As `members(_:)` for an enum.
    func members(_ known: [BodyKey]) throws -> KeyedDecodingContainer<BodyKey> {
        let members = try container(keyedBy: BodyKey.self), known = known.map(\.stringValue)
        guard let unknown = members.allKeys.map(\.stringValue).filter({ !known.contains($0) }).sorted().first else {
            return members
        }
        let names = known.map(ControlJSON.snakeCase).joined(separator: " and ")
        throw ControlError(
            422,
            "there is no member \(ControlJSON.snakeCase(String(unknown.prefix(100)))) \(place.map { "in \($0)" } ?? "here"); the members are \(names)"
        )
    }
}

extension KeyedDecodingContainer {
    /// Unlike `decodeIfPresent`, treats `null` as a wrong value, not as a missing one.
    func decodeIfThere<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value? {
        contains(key) ? try decode(type, forKey: key) : nil
    }

    /// - Parameter form: describes the member, for the error message.
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

/// Any name of a member.
struct BodyKey: CodingKey {
    let stringValue: String
    let intValue: Int? = nil

    init(_ name: String) { stringValue = name }
    init?(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
}
