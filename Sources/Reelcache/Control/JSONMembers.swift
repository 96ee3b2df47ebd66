import CachePolicy
import ControlAPI
import Foundation

/// An object as JSON, some of whose members were written before.
struct JSONMembers {
    private var values: [String: [UInt8]] = [:]

    /// - Parameters:
    ///   - name: in snake_case.
    ///   - json: without a line feed.
    mutating func set(_ name: String, _ json: [UInt8]) { values[name] = json }

    /// - Parameter mask: masks secrets in URLs; nil to mask nothing.
    /// - Returns: the value as JSON.
    @discardableResult
    mutating func set(_ name: String, _ value: some Encodable, _ mask: URLMask?) throws -> [UInt8] {
        let json = try ControlJSON.line(value, masked: mask).dropLast()
        values[name] = Array(json)
        return Array(json)
    }

    /// One line, with a line feed.
    var line: [UInt8] {
        let members = values.sorted { $0.key < $1.key }.map { Array("\"\($0.key)\":".utf8) + $0.value }
        return [UInt8(ascii: "{")] + members.joined(separator: [UInt8(ascii: ",")]) + Array("}\n".utf8)
    }
}
