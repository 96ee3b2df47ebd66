import Foundation
import TestSupport
import Testing

/// A play of mpv with seeks: each comes when the player has come to rest after the one before. Then it lets the film
/// play to its end.
struct SeekingPlay {
    /// What it said: `at SECONDS PICTURE` after each seek, then `end REASON`. A picture is its size and a checksum.
    let lines: [Substring]
    let exit: ChildProcess.Exit
    let errors: String

    private static func script(_ seeks: [Double]) -> String {
        """
        local seeks, next = {\(seeks.map { "\($0)" }.joined(separator: ", "))}, 1
        local function say(...) io.stdout:write(string.format(...), "\\n") io.stdout:flush() end
        local function picture()
            local shot, sum = mp.command_native({name = "screenshot-raw", flags = "video"}), 0
            if not shot then return "none" end
            for row = 0, shot.h - 1 do
                local line = shot.data:sub(row * shot.stride + 1, row * shot.stride + shot.w * 4)
                for i = 1, #line do sum = (sum * 31 + line:byte(i)) % 4294967296 end
            end
            return string.format("%dx%d-%08x", shot.w, shot.h, sum)
        end
        mp.register_event("playback-restart", function()
            say("at %.2f %s", mp.get_property_number("time-pos"), picture())
            if seeks[next] then mp.commandv("seek", seeks[next], "absolute+exact") else mp.set_property_bool("pause", false) end
            next = next + 1
        end)
        mp.register_event("end-file", function(event) say("end %s", event.reason) end)
        """
    }

    /// - Parameter seeks: seconds.
    init(of url: String, seeks: [Double]) throws {
        let directory = try TemporaryDirectory()
        let script = directory.file("seeks.lua")
        try Self.script(seeks).write(toFile: script, atomically: true, encoding: .utf8)
        let outcome = try Player.mpv.run([
            "--no-config", "--load-scripts=no", "--script=\(script)", "--pause",
            // As fast as it can. Its null output complains when it runs dry; everything else is quiet unless there is
            // an error.
            "--vo=null", "--ao=null", "--untimed", "--ao-null-untimed", "--msg-level=all=error,ao=no",
            // Without a cache of its own every seek is a request.
            "--cache=no", url,
        ])
        (lines, exit, errors) = (outcome.stdout.split(separator: "\n"), outcome.exit, outcome.stderr)
    }

    /// Where it was, in seconds, and what it showed there.
    var stops: [(seconds: Double, picture: Substring)] {
        lines.compactMap { line in
            let words = line.split(separator: " ")
            guard words.count == 3, words[0] == "at", let seconds = Double(words[1]) else { return nil }
            return (seconds, words[2])
        }
    }
}
