import HTTPModel

extension Rule {
    /// The longest cookie file, in bytes: larger than what a browser keeps.
    package static let longestCookieFile = 1 << 20

    /// The lines of a cookie file in Netscape's form, as curl and yt-dlp write it, that are cookies.
    /// - Throws: for a text that has other lines, or none.
    package static func cookies(in text: String) throws(RuleError) -> [String] {
        var cookies: [String] = []
        for (index, line) in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).enumerated() {
            guard !line.hasPrefix("#") || line.hasPrefix("#HttpOnly_"), !line.utf8.allSatisfy(ASCII.isOptionalSpace)
            else { continue }
            guard line.utf8.count(where: { $0 == ASCII.tab }) == 6, !line.utf8.contains(0) else {
                throw RuleError(
                    "line \(index + 1) is no cookie; write it as yt-dlp --cookies and curl --cookie-jar do")
            }
            cookies.append(String(line))
        }
        guard !cookies.isEmpty else { throw RuleError("has no cookies; write it anew, or remove the key") }
        return cookies
    }
}
