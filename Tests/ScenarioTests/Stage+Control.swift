import ControlAPI
import Foundation
import Testing
import TestSupport

/// How a request shows the token.
enum Showing: CaseIterable {
    case right, wrong, short, otherScheme, nothing
}

extension Stage {
    /// The token as it stands in the cache directory.
    var token: String {
        get throws {
            try String(contentsOfFile: "\(cache)/control-token", encoding: .utf8).trimmingCharacters(in: .newlines)
        }
    }

    /// Makes one request to the control interface, on a connection of its own.
    /// - Parameters:
    ///   - path: behind `/api/v1`.
    ///   - body: sent with its length; nil for none.
    func control(
        _ method: String, _ path: String, _ showing: Showing = .right, headers: [(String, String)] = [],
        body: String? = nil
    ) throws -> RawClient.Response {
        try control(method, path, showing, headers: headers, bytes: body.map { Array($0.utf8) })
    }

    func control(
        _ method: String, _ path: String, _ showing: Showing = .right, headers: [(String, String)] = [], bytes: [UInt8]?
    ) throws -> RawClient.Response {
        let client = try player()
        var headers = headers + [("Connection", "close")] + (try authorization(showing))
        if let bytes { headers.append(("Content-Length", "\(bytes.count)")) }
        try client.send(Array(client.request("/api/v1" + path, headers: headers, method: method).utf8) + (bytes ?? []))
        return try client.readResponse(method: method)
    }

    func authorization(_ showing: Showing = .right) throws -> [(String, String)] {
        let token = try token
        return switch showing {
        case .right: [("Authorization", "Bearer \(token)")]
        case .wrong: [("Authorization", "Bearer \(token.dropLast())\(token.last == "0" ? "1" : "0")")]
        case .short: [("Authorization", "Bearer \(token.dropLast())")]
        case .otherScheme: [("Authorization", "Basic \(token)")]
        case .nothing: []
        }
    }

    /// The parameter that names a resource of the origin.
    func parameter(_ path: String) -> String { "url=" + percentEncoded(origin.url(path)) }

    /// What a request without a token tells, decoded.
    func read<Value: Decodable>(_ type: Value.Type, _ path: String) throws -> Value {
        try control("GET", path, .nothing).decoded(type)
    }

    /// Encodes all that is not a letter or a digit.
    func percentEncoded(_ text: String) -> String {
        text.utf8.map { byte in
            let character = Character(UnicodeScalar(byte))
            return character.isASCII && (character.isLetter || character.isNumber)
                ? String(character) : "%" + String(Int(byte) + 0x100, radix: 16).suffix(2)
        }.joined()
    }
}

extension RawClient.Response {
    /// The body as what it was made of. Records what is wrong with how it was sent.
    func decoded<Value: Decodable>(
        _ type: Value.Type, status: Int = 200, sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> Value {
        #expect(self.status == status, "\(text)", sourceLocation: sourceLocation)
        #expect(
            headers["Content-Type"] == "application/json" && headers["Cache-Control"] == "no-store",
            sourceLocation: sourceLocation)
        #expect(body.filter { $0 == 0x0A }.count == 1 && body.last == 0x0A, sourceLocation: sourceLocation)
        return try ControlJSON.decode(type, from: body)
    }

    /// The members of an object, by the names that they have on the wire.
    var members: [String: Any] {
        get throws { try #require(JSONSerialization.jsonObject(with: Data(body)) as? [String: Any]) }
    }
}

/// The response is an error of the control interface: one line of JSON with one line of text.
func expectRefusal(
    _ response: RawClient.Response, _ status: Int, naming text: String = "",
    sourceLocation: SourceLocation = #_sourceLocation
) {
    struct Refusal: Decodable {
        let error: String
    }
    do {
        let line = try response.decoded(Refusal.self, status: status, sourceLocation: sourceLocation).error
        #expect(
            !line.isEmpty && !line.contains("\n") && (text.isEmpty || line.contains(text)), "\(line)",
            sourceLocation: sourceLocation)
    } catch { Issue.record("\(error): \(response.text)", sourceLocation: sourceLocation) }
}
