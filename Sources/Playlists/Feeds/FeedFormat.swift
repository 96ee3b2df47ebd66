import CachePolicy
import HTTPModel

/// The format of a text, recognized by its beginning, or else by its media type and name.
enum FeedFormat {
    case xml, m3u, pls

    /// - Parameters:
    ///   - bytes: the text in UTF-8, or in another encoding that contains ASCII.
    ///   - type: the media type of the response.
    /// - Throws: if the text is recognized as something else.
    init(of bytes: [UInt8], type: String?, path: Substring) throws(FeedError) {
        let start = XMLProlog.blank(bytes), head = bytes[start...].prefix(16)
        if Self.begins(head, "#EXTM3U") {
            self = .m3u
        } else if Self.begins(head, "[playlist]") {
            self = .pls
        } else if Self.begins(head, "<!doctype html") || Self.begins(head, "<html") {
            throw .page
        } else if head.first == XMLByte.less || Self.begins(bytes[XMLProlog.start(of: bytes)...], "<") {
            self = .xml
        } else {
            self = try Self.named(type, path, head)
        }
    }

    private static func begins(_ bytes: ArraySlice<UInt8>, _ text: String) -> Bool {
        ASCII.equalIgnoringCase(bytes.prefix(text.utf8.count), Array(text.utf8))
    }

    private static func named(_ type: String?, _ path: Substring, _ head: ArraySlice<UInt8>) throws(FeedError)
        -> FeedFormat
    {
        if head.first == UInt8(ascii: "{") { throw .notAFeed("it is JSON") }
        let type = MediaTypeName.essence(type) ?? "", name = ASCII.lowercased(path)
        if type.hasSuffix("mpegurl") || name.hasSuffix(".m3u") || name.hasSuffix(".m3u8") { return .m3u }
        if type.hasSuffix("scpls") || name.hasSuffix(".pls") { return .pls }
        if head.contains(where: { $0 < ASCII.space && !ASCII.isXMLSpace($0) }) { throw .notAFeed("it is not text") }
        throw .notAFeed("it has neither XML nor a list of files in it")
    }
}

/// Reads media types in feeds and responses.
enum MediaTypeName {
    /// The media type in lower case, without parameters; nil if it has no slash.
    static func essence(_ written: String?) -> String? {
        guard let written, written.utf8.count <= 512 else { return nil }
        let name = ASCII.lowercased(ASCII.trimmed(written.prefix { $0 != ";" }))
        let isName = name.utf8.allSatisfy { $0 > ASCII.space && $0 < 0x7F }
        return isName && name.utf8.count <= 100 && name.contains("/") ? name : nil
    }

    /// `text/xml; charset="utf-8"`
    static func charset(_ written: String?) -> String? {
        guard let parameters = written?.split(separator: ";").dropFirst() else { return nil }
        let values = parameters.compactMap { parameter -> String? in
            let parts = parameter.split(separator: "=", maxSplits: 1).map { ASCII.trimmed($0) }
            guard parts.count == 2, ASCII.equalIgnoringCase(parts[0], "charset") else { return nil }
            return parts[1].filter { $0 != "\"" && $0 != "'" }
        }
        return values.first
    }
}
