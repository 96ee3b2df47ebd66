import CDashboard
import HTTPModel
import HTTPTransport

/// A file of the dashboard: the page, its style or one of its scripts. All of them are part of the program.
struct DashboardFile: Sendable {
    let name: String
    /// Its media type.
    let type: String
    let bytes: [UInt8]
    /// Differs between versions of the file.
    let etag: EntityTag

    /// The page.
    static let pageName = "index.html"
    /// Where the files are, whatever is mounted.
    static let prefix = "/api/dashboard/"

    /// All files.
    static let all: [DashboardFile] = {
        var files: [DashboardFile] = []
        while let file = reelcache_dashboard_file(files.count) { files.append(DashboardFile(file.pointee)) }
        return files
    }()

    private static let byName = Dictionary(uniqueKeysWithValues: all.map { ($0.name, $0) })

    /// - Returns: nil if there is no such file.
    static func named(_ name: some StringProtocol) -> DashboardFile? { byName[String(name)] }

    private init(_ file: reelcache_dashboard_file) {
        name = String(cString: file.name)
        type = String(cString: file.type)
        bytes = Self.uncommented(UnsafeBufferPointer(start: file.bytes, count: file.length))
        etag = EntityTag(opaque: String(Self.checksum(bytes), radix: 16))
    }

    /// Without lines of comments, which are for readers of the source.
    private static func uncommented(_ text: UnsafeBufferPointer<UInt8>) -> [UInt8] {
        var (kept, isComment): ([UInt8], Bool) = ([], false)
        for line in text.split(separator: ASCII.lineFeed, omittingEmptySubsequences: false) {
            let words = line.drop { $0 == UInt8(ascii: "\t") || $0 == ASCII.space }
            isComment = isComment || words.starts(with: "/*".utf8)
            if isComment {
                // The end of one is the end of its line.
                isComment = !words.reversed().starts(with: "/*".utf8)
            } else if !words.starts(with: "//".utf8) {
                kept += line
                kept.append(ASCII.lineFeed)
            }
        }
        return kept
    }

    /// FNV-1a, 64 bits.
    private static func checksum(_ bytes: [UInt8]) -> UInt64 {
        bytes.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
    }

    /// What the page may do in a browser: load this proxy's scripts, styles, pictures and media, and send requests to
    /// it. Nothing of the page comes from elsewhere, no script stands in its text, and no page may show it in a frame.
    /// Text cannot become markup either: the policy on trusted types leaves no function that makes it so.
    private static let policy = [
        "default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "img-src 'self' data:",
        "media-src 'self'", "form-action 'none'", "frame-ancestors 'none'", "base-uri 'none'",
        "require-trusted-types-for 'script'", "trusted-types 'none'",
    ].joined(separator: "; ")

    /// Responds with the file, or with 304 if the client has it.
    func respond(to exchange: Exchange) {
        let isKnown = Conditional.evaluate(exchange.request, against: .init(etag: etag)) == .notModified
        var response = Response(isKnown ? 304 : 200, length: Int64(bytes.count))
        response.field("ETag", etag.fieldValue)
        // A browser asks each time, so that the files of two versions of the program never meet.
        response.field("Cache-Control", "no-cache")
        if name == Self.pageName { response.field("Vary", "Accept") }
        response.field("Content-Type", type)
        response.field("Content-Security-Policy", Self.policy)
        response.field("Cross-Origin-Opener-Policy", "same-origin")
        response.field("Referrer-Policy", "no-referrer")
        exchange.respond(response, body: BytesSource(bytes))
    }
}
