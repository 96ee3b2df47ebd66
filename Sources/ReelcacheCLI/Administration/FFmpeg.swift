import Administration
import ControlAPI
import Foundation

/// Runs `ffmpeg` to put several files into one, without encoding anything again.
struct FFmpeg {
    enum Input {
        /// A file that this program named, and whose bytes come from an origin.
        case file(String, MediaContainer)
        /// The URL of an HLS media playlist at a proxy, all of whose URLs lead to that proxy.
        case playlist(String)

        /// Names the container and forbids other protocols: a playlist disguised as a segment must not lead to other files
        /// or to the network.
        fileprivate var arguments: [String] {
            switch self {
            case .file(let path, let container):
                ["-protocol_whitelist", "file", "-f", container.rawValue, "-i", "file:" + path]
            case .playlist(let url):
                ["-protocol_whitelist", "http,tcp,crypto,data", "-allowed_extensions", "ALL"]
                    + FFmpeg.known(["-allowed_segment_extensions", "ALL"]) + FFmpeg.known(["-extension_picky", "0"])
                    + ["-f", "hls", "-i", url]
            }
        }
    }

    private let interruption: Interruption
    /// How many of the last bytes of its errors are kept.
    private static let longestWord = 4096

    init(_ interruption: Interruption) { self.interruption = interruption }

    /// - Throws: `ControlError` where it is not installed, refuses, or is interrupted.
    func run(_ inputs: [Input], to output: String) throws {
        let process = Process(), errors = Pipe()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = Self.arguments(inputs, output)
        (process.standardError, process.standardOutput) = (errors, FileHandle.nullDevice)
        try process.run()
        guard let said = listen(errors.fileHandleForReading) else {
            // It may have inherited a blocked SIGTERM.
            if process.isRunning { kill(process.processIdentifier, SIGKILL) }
            process.waitUntilExit()
            throw ControlError.interrupted
        }
        process.waitUntilExit()
        // env(1): the command was not found.
        if process.terminationStatus == 127 {
            throw ControlError("this needs ffmpeg, which is not installed: install it, or choose one --rendition")
        }
        guard process.terminationReason == .exit, process.terminationStatus == 0 else {
            let line = said.split(whereSeparator: \.isNewline).last { !$0.hasSuffix("-- ") } ?? "no reason given"
            throw ControlError("ffmpeg cannot make one file of it: \(line.prefix(300))")
        }
    }

    /// An option with its value, if this ffmpeg has it.
    private static func known(_ option: [String]) -> [String] { help.contains("\n\(option[0]) ") ? option : [] }

    /// All of its options, a line each; nothing where it is not installed.
    private static let help: String = {
        let process = Process(), answer = Pipe()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["ffmpeg", "-v", "quiet", "-h", "full"]
        (process.standardOutput, process.standardError) = (answer, FileHandle.nullDevice)
        guard (try? process.run()) != nil else { return "" }
        defer { process.waitUntilExit() }
        let text = String(decoding: answer.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        return text.replacing("\n  -", with: "\n-")
    }()

    private static func arguments(_ inputs: [Input], _ output: String) -> [String] {
        var arguments = ["ffmpeg", "-nostdin", "-v", "error"]
        for (number, input) in inputs.enumerated() {
            // Each would begin at 0 otherwise: what begins apart has to stay apart.
            arguments += (number > 0 ? known(["-isync", "0"]) : []) + input.arguments
        }
        for number in inputs.indices {
            for kind in ["v", "a", "s"] { arguments += ["-map", "\(number):\(kind)?"] }
        }
        let subtitles = output.lowercased().hasSuffix(".srt") ? ["-c:s", "srt"] : []
        return arguments + ["-c", "copy"] + subtitles + ["file:" + output]
    }

    /// - Returns: the end of what it wrote to standard error; nil if this command was interrupted.
    private func listen(_ handle: FileHandle) -> String? {
        var last = Data()
        while !interruption.isRequested {
            var state = pollfd(fd: handle.fileDescriptor, events: Int16(POLLIN), revents: 0)
            guard poll(&state, 1, 200) > 0 else { continue }
            let more = handle.availableData
            guard !more.isEmpty else { return String(decoding: last, as: UTF8.self) }
            last.append(more)
            last = Data(last.suffix(Self.longestWord))
        }
        return nil
    }
}
