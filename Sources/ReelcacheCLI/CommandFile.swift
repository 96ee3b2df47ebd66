import Administration
import ControlAPI
import Foundation
import HTTPModel

/// Files that a command reads whole.
enum CommandFile {
    /// - Parameter file: a path; `-` for standard input.
    static func bytes(of file: String) throws -> [UInt8] {
        let descriptor = file == "-" ? STDIN_FILENO : open(file, O_RDONLY | O_CLOEXEC)
        var (bytes, buffer): ([UInt8], [UInt8]) = ([], [UInt8](repeating: 0, count: 1 << 16))
        while true {
            let count = descriptor >= 0 ? read(descriptor, &buffer, buffer.count) : -1
            if count < 0 && errno == EINTR { continue }
            guard count >= 0 else {
                throw ControlError(
                    "cannot read \(file == "-" ? "standard input" : file): \(String(errno: errno))")
            }
            if count == 0 { break }
            bytes += buffer[..<count]
        }
        if descriptor != STDIN_FILENO { close(descriptor) }
        return bytes
    }

    /// - Throws: also if it is not UTF-8.
    static func text(of file: String) throws -> String {
        guard let text = String(validating: try bytes(of: file), as: UTF8.self) else {
            throw ControlError("\(file) is not UTF-8: write one URL on each line")
        }
        return text
    }
}
