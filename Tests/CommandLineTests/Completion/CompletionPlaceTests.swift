import ReelcacheCLI
import Testing

/// What can stand at a place of a command line.
@Suite struct CompletionPlaceTests {
    private static let dump = """
        {"serializationVersion": 0, "command": {"commandName": "reelcache", "subcommands": [
            {"commandName": "ls", "abstract": "List.", "arguments": [
                {"kind": "option", "names": [{"kind": "long", "name": "sort"}], "abstract": "The order.",
                 "completionKind": {"list": {"values": ["size", "name"]}}},
                {"kind": "option", "names": [{"kind": "long", "name": "config"}], "completionKind": {"file": {"extensions": []}}},
                {"kind": "flag", "names": [{"kind": "long", "name": "json"}]},
                {"kind": "flag", "names": [{"kind": "long", "name": "hidden"}], "shouldDisplay": false}]},
            {"commandName": "rm", "arguments": [
                {"kind": "positional", "isRepeating": true, "completionKind": {"shellCommand": {"command": "urls"}}},
                {"kind": "option", "isRepeating": true, "names": [{"kind": "long", "name": "allow"}]},
                {"kind": "option", "names": [{"kind": "short", "name": "o"}, {"kind": "long", "name": "output"}],
                 "completionKind": {"directory": {}}}]},
            {"commandName": "play", "arguments": [
                {"kind": "positional", "completionKind": {"shellCommand": {"command": "urls"}}},
                {"kind": "positional", "isRepeating": true, "parsingStrategy": "postTerminator"}]},
            {"commandName": "downloads", "defaultSubcommand": "list", "subcommands": [
                {"commandName": "list", "arguments": [{"kind": "flag", "names": [{"kind": "long", "name": "all"}]}]},
                {"commandName": "pause", "arguments": [
                    {"kind": "positional", "isRepeating": true, "completionKind": {"shellCommand": {"command": "downloads"}}}]},
                {"commandName": "help"}]},
            {"commandName": "secret", "shouldDisplay": false},
            {"commandName": "help", "abstract": "Show help."}]}}
        """

    private func place(_ words: String...) throws -> CompletionPlace {
        let tree = try CommandTree(dump: Self.dump.utf8)
        return CompletionPlace(in: tree, words: words.dropLast(), current: words.last ?? "")
    }

    private func values(_ place: CompletionPlace, _ names: String...) -> [String] {
        place.matches(names.map { Candidate($0) }).map(\.value)
    }

    @Test func commandsAndTheirSubcommandsAreOffered() throws {
        #expect(try values(place("")) == ["ls", "rm", "play", "downloads", "help"])
        #expect(try values(place("l")) == ["ls"])
        #expect(try place("l").matches() == [Candidate("ls", "List.")])
        #expect(try values(place("downloads", "")) == ["list", "pause"])
        #expect(try values(place("help", "")) == ["ls", "rm", "play", "downloads", "help"])
        #expect(try values(place("help", "downloads", "p")) == ["pause"])
        #expect(try values(place("secret", "")) == [] && values(place("none", "")) == [])
    }

    @Test func flagsAreOfferedOnce() throws {
        #expect(try values(place("ls", "-")) == ["--sort", "--config", "--json"])
        #expect(try values(place("ls", "--json", "--sort=name", "-")) == ["--config"])
        #expect(try values(place("rm", "--allow", "a", "-o", "/a", "-")) == ["--allow"])
        // A subcommand that need not be named lends its own.
        #expect(try values(place("downloads", "--a")) == ["--all"])
        #expect(try values(place("downloads", "pause", "--a")) == [])
    }

    /// As they may be written.
    @Test func optionsOfEveryCommandStandBeforeIt() throws {
        #expect(try values(place("--config", "/a", "l")) == ["ls"] && values(place("--config=/a", "l")) == ["ls"])
        #expect(try place("--config", "").source == .files && place("--config=", "").source == .files)
        #expect(try values(place("--")) == ["--config"] && values(place("--sort", "")) != ["size", "name"])
        #expect(try place("--config", "/a", "rm", "").options["--config"] == ["/a"])
    }

    @Test func valuesOfOptionsAreOffered() throws {
        #expect(try values(place("ls", "--sort", "")) == ["size", "name"])
        #expect(try values(place("ls", "--sort", "n")) == ["name"])
        #expect(try values(place("ls", "--sort=n")) == ["--sort=name"])
        #expect(try values(place("ls", "--sort", "name", "")) == [])
        let file = try place("ls", "--config=/et")
        #expect(file.source == .files && file.lead == "--config=" && file.typed == "/et")
        #expect(try place("rm", "-o", "").source == .directories && place("rm", "--output", "a").source == .directories)
        #expect(try place("rm", "--allow", "").source == .candidates([]))
        // Also where it looks like a flag.
        #expect(try place("ls", "--config", "--x").source == .files)
    }

    @Test func namesThatTheProgramKnowsAreOfferedOnce() throws {
        let place = try place("rm", "http://a/1", "--output", "/d", "http://a/")
        #expect(place.source == .known("urls") && place.command == ["rm"] && place.positionals == ["http://a/1"])
        #expect(place.options == ["-o": ["/d"], "--output": ["/d"]])
        #expect(values(place, "http://a/1", "http://a/2", "http://b/3") == ["http://a/2"])
        #expect(try self.place("downloads", "pause", "").source == .known("downloads"))
    }

    @Test func behindTheTerminatorNothingIsAFlag() throws {
        #expect(try place("play", "").source == .known("urls"))
        #expect(try place("play", "http://a/1", "").source == .candidates([]))
        #expect(try place("play", "http://a/1", "--", "-").source == .candidates([]))
        #expect(try place("rm", "--", "").source == .known("urls"))
        #expect(try values(place("rm", "--", "--a"), "--abc") == ["--abc"])
    }
}
