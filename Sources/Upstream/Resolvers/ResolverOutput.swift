import CachePolicy
import Foundation
import HTTPModel

/// Reads what a resolver printed: a line with the URL of the media, or a JSON object.
///
/// | member | meaning |
/// |---|---|
/// | `url` | the URL of the media |
/// | `headers`, `http_headers` | fields to send, by name |
/// | `expires` | when the URL expires, in seconds since 1970 |
/// | `expires_in` | the same, in seconds from now |
/// | `key` | a name that the media has at all its URLs |
/// | `title`, `ext` | what to call a file of it, without and with its extension |
///
/// The names with an underscore, `title` and `ext` are those of yt-dlp. Other members are ignored.
package enum ResolverOutput {
    /// Why an output is not understood; completes a sentence that begins with the resolver's name.
    package struct Problem: Error, Equatable {
        package let reason: String
    }

    /// The longest output in bytes: yt-dlp prints all formats with their URLs.
    package static let longest = 4 << 20
    private static let mostHeaders = 64
    private static let longestHeaders = 16 << 10
    private static let longestURL = 16 << 10
    /// In bytes.
    private static let longestName = 512

    /// - Parameter now: seconds since 1970.
    package static func read(_ output: [UInt8], at now: Int64) throws(Problem) -> MediaLocation {
        guard let text = String(validating: output, as: UTF8.self) else {
            throw Problem(reason: "printed text that is not UTF-8; let it print a URL or JSON")
        }
        let lines = text.split(whereSeparator: \.isNewline).map { $0.trimmingCharacters(in: .whitespaces) }
            .filter { !$0.isEmpty }
        guard let first = lines.first else { throw Problem(reason: "printed nothing; let it print a URL or JSON") }
        guard first.hasPrefix("{") else { return try read(lines: lines, at: now) }
        // A line for each object, or one object over several lines.
        guard let members = object(first) ?? object(text) else {
            throw Problem(reason: "printed JSON that is malformed")
        }
        return try read(members, at: now)
    }

    private static func read(lines: [String], at now: Int64) throws(Problem) -> MediaLocation {
        guard lines.count == 1 else {
            throw Problem(
                reason:
                    "printed \(lines.count) lines instead of one with a URL; choose a format that has picture and sound in one file"
            )
        }
        let url = try url(lines[0])
        return MediaLocation(url: url, expires: expiry(in: url, at: now))
    }

    private static func object(_ text: String) -> [String: Any]? {
        (try? JSONSerialization.jsonObject(with: Data(text.utf8))) as? [String: Any]
    }

    private static func read(_ members: [String: Any], at now: Int64) throws(Problem) -> MediaLocation {
        guard let text = members["url"] as? String else {
            if members["requested_formats"] != nil {
                throw Problem(
                    reason: "chose two files; choose a format that has picture and sound in one, such as -f best")
            }
            if members["entries"] != nil || members["_type"] as? String == "playlist" {
                throw Problem(reason: "printed a list of media; add an option for one, such as --no-playlist")
            }
            throw Problem(reason: "printed JSON without a url")
        }
        let url = try url(text)
        let headers = try headers(members["headers"] ?? members["http_headers"])
        return MediaLocation(
            url: url, headers: headers,
            expires: number(members["expires"]) ?? number(members["expires_in"]).map { now +| $0 }
                ?? expiry(in: url, at: now),
            key: name(members["key"]), fileName: fileName(members))
    }

    private static func url(_ text: String) throws(Problem) -> OriginURL {
        guard text.utf8.count <= longestURL else { throw Problem(reason: "printed a URL that is too long") }
        do throws(OriginURLError) { return try OriginURL(url: text) } catch {
            throw Problem(reason: "printed no URL of http or https: \(error.reason)")
        }
    }

    // MARK: Members

    /// Fields that the proxy sets itself are left out, as are malformed ones.
    private static func headers(_ value: Any?) throws(Problem) -> HeaderFields {
        var fields = HeaderFields()
        guard let members = value as? [String: Any] else { return fields }
        // Before anything is done with them: 4 MiB may hold a quarter of a million.
        guard members.count <= mostHeaders else { throw Problem(reason: "printed too many header fields") }
        for (name, value) in members.sorted(by: { $0.key < $1.key }) {
            guard let value = value as? String, (try? ConfiguredField.check(name: name, value: value)) != nil else {
                continue
            }
            fields.replace(name, value)
        }
        let length = fields.lines.reduce(0) { $0 +| $1.name.utf8.count +| $1.value.utf8.count }
        guard length <= longestHeaders else {
            throw Problem(reason: "printed too many header fields")
        }
        return fields
    }

    private static func number(_ value: Any?) -> Int64? {
        switch value {
        case let number as NSNumber: Int64(saturating: number.doubleValue)
        case let text as String: Double(text).map { Int64(saturating: $0) }
        default: nil
        }
    }

    private static func name(_ value: Any?) -> String? {
        guard let text = value as? String, !text.isEmpty, text.utf8.count <= longestName else { return nil }
        return text.printable
    }

    /// The title as the name of a file, without the separators of paths.
    private static func fileName(_ members: [String: Any]) -> String? {
        guard let title = members["title"] as? String else { return nil }
        let line = title.map { $0.isWhitespace ? " " : "/\\".contains($0) ? "-" : $0 }
        let plain = String(line).printable.replacing("\\", with: "")
        var name = plain.beginning(120).trimmingCharacters(in: .whitespaces)
        guard !name.isEmpty, name != ".", name != ".." else { return nil }
        if let type = members["ext"] as? String, !type.isEmpty, type.utf8.count <= 8,
            type.utf8.allSatisfy({ ASCII.isLetter($0) || ASCII.isDigit($0) })
        {
            name += "." + type
        }
        return name
    }

    // MARK: Expiry

    /// Parameters of signed URLs that hold their expiry in seconds since 1970.
    private static let expiryParameters = ["expire", "expires"]

    /// When a signed URL expires, if its query states that.
    static func expiry(in url: OriginURL, at now: Int64) -> Int64? {
        guard let mark = url.pathAndQuery.firstIndex(of: "?") else { return nil }
        for pair in url.pathAndQuery[mark...].dropFirst().split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1)
            // Smaller numbers are lengths of time, and larger ones milliseconds.
            guard parts.count == 2, expiryParameters.contains(parts[0].lowercased()),
                let time = ASCII.decimal(parts[1].utf8), 1_000_000_000..<100_000_000_000 ~= time, time > now
            else { continue }
            return time
        }
        return nil
    }
}
