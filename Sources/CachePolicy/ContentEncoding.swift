import HTTPModel

/// Content codings of responses (RFC 9110 §8.4). The proxy requests none from origins.
package enum ContentEncoding {
    package static func isUncoded(_ fields: HeaderFields) -> Bool { codings(fields).isEmpty }

    /// Whether a response is a playlist, or may be a feed, in a coding that can be decoded. Its bytes are stored as
    /// they arrive, but no ranges of them can be served.
    package static func isCodedListing(_ fields: HeaderFields, at url: OriginURL) -> Bool {
        let codings = codings(fields)
        return !codings.isEmpty && codings.allSatisfy(isDecodable) && isListing(fields, at: url)
    }

    /// Whether a response is a playlist, or may be a feed, in a coding that cannot be decoded.
    package static func isUnreadableListing(_ fields: HeaderFields, at url: OriginURL) -> Bool {
        let codings = codings(fields)
        return !codings.allSatisfy(isDecodable) && isListing(fields, at: url)
    }

    private static func isListing(_ fields: HeaderFields, at url: OriginURL) -> Bool {
        let type = fields["Content-Type"] ?? ""
        return StrayPage.isPlaylist(type: type, url) || FeedRecognition.mayBe(type: type)
    }

    package static func isDecodable(_ coding: String) -> Bool { ["gzip", "x-gzip", "deflate"].contains(coding) }

    /// The codings of a response, in lower case and in the order in which they were applied.
    package static func codings(_ fields: HeaderFields) -> [String] {
        let lists = fields.all("Content-Encoding")
        if lists.isEmpty { return [] }
        return lists.flatMap { $0.split(separator: ",") }.map { ASCII.lowercased(ASCII.trimmed($0)) }
            .filter { !namesOfNone.contains($0) }
    }

    /// What origins state although nothing is encoded: no coding, how an object store was sent the bytes, encodings of
    /// MIME, and character sets.
    private static let namesOfNone: Set<String> = [
        "", "identity", "none", "aws-chunked", "7bit", "8bit", "binary", "us-ascii", "iso-8859-1", "utf-8", "utf8",
    ]
}
