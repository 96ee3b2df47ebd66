import ArgumentParser

/// A command with `--json`, which then prints errors as JSON, too.
protocol JSONCommand: ParsableCommand {
    var json: Bool { get }
}
