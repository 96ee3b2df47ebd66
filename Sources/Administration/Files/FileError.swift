/// Why a file cannot be read, written or placed. The description is one line that tells what to do.
package struct FileError: Error, Sendable, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }

    package static let interrupted = FileError("interrupted")
}
