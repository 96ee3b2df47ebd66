import ArgumentParser
import Reelcache

/// A command with `--json`, which then prints errors as JSON, too.
protocol JSONCommand: ParsableCommand {
    var json: Bool { get }
}

/// A command that prints what it did or found.
protocol PrintingCommand: JSONCommand {
    var printing: PrintingOptions { get }
}

extension PrintingCommand {
    var json: Bool { printing.json }
}

/// How a command prints, and of which cache.
struct PrintingOptions: ParsableArguments {
    @Flag(help: "Print JSON.")
    var json = false
    @OptionGroup var secret: SecretOptions
    @OptionGroup var cache: CacheOptions

    /// Prints a value as JSON, or as text for people; secrets are masked in both.
    /// - Parameter text: nil to print nothing for people.
    func print(_ value: some Encodable, _ configuration: ProxyConfiguration, text: @autoclosure () throws -> String?)
        throws
    {
        if json { return Swift.print(try secret.json(value, configuration)) }
        if let text = try text() { Swift.print(try secret.shown(text, configuration)) }
    }
}
