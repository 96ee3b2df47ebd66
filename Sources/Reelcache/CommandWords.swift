/// What the library advises, in the words of the commands: it speaks of settings by name, and a command has flags for them.
package enum CommandWords {
    /// A text with the advice of a command that has opened the cache itself.
    package static func of(_ text: String) -> String {
        text.replacing("choose another cache directory", with: "choose another --cache-dir")
            .replacing("has this port, choose another", with: "has this port, choose another with --listen")
            .replacing(/\badd (\S+) to allow\b/) { "use --allow \($0.1)" }
    }
}
