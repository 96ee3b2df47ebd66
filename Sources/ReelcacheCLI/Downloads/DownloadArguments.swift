import Administration
import ArgumentParser
import CachePolicy
import Downloads
import Foundation
import HTTPModel
import Reelcache

extension Download.Priority: ExpressibleByArgument {}
extension Download.State: ExpressibleByArgument {}

/// Values of options; the errors say what to write instead.
enum DownloadArgument {
    static func size(_ text: String) throws -> Int64 {
        guard let size = ByteSize(text), size.bytes > 0 else {
            throw ValidationError("write a size like 500kB or 10MiB")
        }
        return size.bytes
    }

    /// Bytes per second.
    static func rate(_ text: String) throws -> Int64 {
        guard let size = ByteSize(text.hasSuffix("/s") ? String(text.dropLast(2)) : text), size.bytes > 0 else {
            throw ValidationError("write bytes per second, like 500kB or 2MB")
        }
        return size.bytes
    }

    /// 0 for no limit.
    static func rateOrNone(_ text: String) throws -> Int64 { text == "none" ? 0 : try rate(text) }
}

extension ProxyConfiguration {
    /// The URLs that a user names.
    /// - Parameter file: with one URL on each line; `-` for standard input.
    /// - Throws: if there is no URL, or if one of the texts is not a URL.
    func urls(_ arguments: [String], file: String?) throws -> [OriginURL] {
        var list = try urlList()
        for argument in arguments { list.add(argument: argument) }
        if let file { list.add(lines: try CommandFile.text(of: file), of: file == "-" ? "standard input" : file) }
        guard list.problems.isEmpty else {
            let shown =
                list.problems.prefix(10)
                + (list.problems.count > 10 ? ["and \((list.problems.count - 10).grouped) more"] : [])
            throw ValidationError(shown.joined(separator: "\n"))
        }
        guard !list.urls.isEmpty else {
            throw ValidationError(
                "there is no URL in \(file.map { $0 == "-" ? "standard input" : $0 } ?? "the arguments")")
        }
        return list.urls
    }
}
