import Administration
import ControlAPI
import Testing

/// Which program plays, and in which environment.
@Suite struct PlayerProgramTests {
    private func find(_ words: [String], _ files: Set<String>, path: String? = "/opt/bin:/usr/bin") throws
        -> PlayerProgram
    {
        try PlayerProgram(words, searchPath: path) { files.contains($0) }
    }

    @Test(arguments: [
        (["/usr/bin/ffplay", "/usr/bin/vlc", "/opt/bin/mpv"], "/opt/bin/mpv"),
        (["/usr/bin/ffplay", "/usr/bin/vlc"], "/usr/bin/vlc"), (["/usr/bin/ffplay"], "/usr/bin/ffplay"),
        (["/usr/bin/mpv", "/opt/bin/mpv", "/opt/bin/vlc"], "/opt/bin/mpv"),
    ])
    func withoutANameTheFirstThatIsInstalledPlays(files: [String], path: String) throws {
        let program = try find([], Set(files))
        #expect(program.path == path && program.arguments == [])
    }

    @Test func aNameIsLookedForAndAPathIsTakenAsItIs() throws {
        let files: Set = ["/usr/bin/vlc", "/home/me/play", "mine", "./mine"]
        #expect(try find(["vlc", "--fullscreen"], files).arguments == ["--fullscreen"])
        #expect(try find(["/home/me/play"], files).path == "/home/me/play")
        // Whatever lies in the working directory is no player.
        #expect(throws: ControlError.self) { try find(["mine"], files, path: ".:") }
        #expect(try find(["mpv"], ["/usr/bin/mpv"], path: nil).path == "/usr/bin/mpv")
    }

    @Test(arguments: [
        (
            [],
            "no player is installed: install mpv (sudo apt install mpv), VLC or ffplay, or name another with --player"
        ),
        (["mplayer"], "the player mplayer is not installed: install it, or name another with --player"),
        (["/opt/none"], "the player /opt/none is not a program: name another with --player"),
    ])
    func oneThatIsMissingIsNamed(words: [String], line: String) throws {
        let error = try #require(throws: ControlError.self) { try find(words, []) }
        #expect(error.description == line)
    }

    @Test func aDirectoryIsNoProgram() {
        #expect(PlayerProgram.isProgram("/bin/sh") && !PlayerProgram.isProgram("/usr/bin"))
        #expect(!PlayerProgram.isProgram("/etc/passwd") && !PlayerProgram.isProgram("/none"))
    }

    @Test func theProxyIsReachedWithoutAnotherProxy() {
        let environment = PlayerProgram.environment(
            ["http_proxy": "http://proxy:3128", "https_proxy": "a", "no_proxy": "nas.local", "NO_PROXY": "", "A": "b"],
            host: "127.0.0.1")
        #expect(
            environment == [
                "https_proxy": "a", "no_proxy": "nas.local,127.0.0.1", "NO_PROXY": "127.0.0.1", "A": "b",
            ])
    }
}
