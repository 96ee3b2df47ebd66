import CachePolicy
import HTTPModel

/// Guesses the next file of a numbered series: `show-s01e02.mp4` after `show-s01e01.mp4`.
///
/// Only a number at the end of the name counts, without anything behind it that another episode may have otherwise: a
/// title, a resolution, a query with a signature.
enum SeriesName {
    /// More digits are a date, a time or an identifier.
    private static let mostDigits = 4
    /// Films are named after their year.
    private static let years = 1900...2099
    /// Files that are whole episodes or tracks. Segments of streams are numbered as well, and not among them.
    private static let extensions: Set<String> = [
        "aac", "aiff", "avi", "flac", "flv", "m4a", "m4b", "m4v", "mka", "mkv", "mov", "mp3", "mp4", "mpeg", "mpg",
        "oga", "ogg", "ogv", "opus", "wav", "webm", "wma", "wmv",
    ]

    /// - Returns: nil if the URL is not that of a numbered file.
    static func next(after url: OriginURL) -> OriginURL? {
        let path = Array(url.pathAndQuery.utf8)
        guard let name = url.fileExtension, extensions.contains(name), !path.contains(UInt8(ascii: "?")),
            let dot = path.lastIndex(of: UInt8(ascii: "."))
        else { return nil }
        let stem = path[..<dot]
        guard let digits = number(at: stem), let value = ASCII.decimal(digits), !isYear(value, digits, in: stem) else {
            return nil
        }
        let text = "\(value +| 1)"
        let zeros = String(repeating: "0", count: max(0, digits.count - text.utf8.count))
        let before = String(decoding: path[..<digits.startIndex], as: UTF8.self)
        let after = String(decoding: path[dot...], as: UTF8.self)
        return try? OriginURL(url: url.scheme.rawValue + "://" + url.authority + before + zeros + text + after)
    }

    /// The digits at the end of a path, without those of an encoded character (`%20`).
    private static func number(at stem: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        let start = (stem.lastIndex { !ASCII.isDigit($0) } ?? stem.startIndex) + 1
        var digits = stem[start...]
        if stem[..<start].last == UInt8(ascii: "%") {
            digits = digits.dropFirst(2)
        } else if stem[..<start].dropLast().last == UInt8(ascii: "%"), stem[..<start].last.map(isHex) == true {
            digits = digits.dropFirst()
        }
        return (1...mostDigits).contains(digits.count) ? digits : nil
    }

    private static func isHex(_ byte: UInt8) -> Bool { ASCII.hexValue(byte) != nil }

    private static func isYear(_ value: Int64, _ digits: ArraySlice<UInt8>, in stem: ArraySlice<UInt8>) -> Bool {
        // A letter before it, as in e1999, makes it a count.
        let before = stem[..<digits.startIndex].last
        return digits.count == 4 && years.contains(Int(value)) && !(before.map(ASCII.isLetter) ?? false)
    }
}
