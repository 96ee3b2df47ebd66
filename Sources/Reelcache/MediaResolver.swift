/// A program that finds the media behind pages: an entry of `resolvers`.
///
/// For a URL that matches, the proxy runs the program and fetches the media from the address that it prints. The cache
/// key is still the page's, so that cached bytes play without running it, and under a new address.
///
/// ```swift
/// configuration.resolvers = [
///     MediaResolver(
///         hosts: ["video.example"], paths: ["/watch"],
///         command: ["yt-dlp", "--no-playlist", "--format", "best", "--get-url"])
/// ]
/// ```
///
/// The program runs without a shell, with a small environment and without input. It prints one line with a URL, or a
/// JSON object; `docs/programs/resolvers.md` describes both.
public struct MediaResolver: Sendable, Equatable {
    /// Hosts, one of which must match, as in a `ResourceRule`. An empty list matches all hosts; then `paths` must not be
    /// empty.
    public var hosts: [String]
    /// Paths, one of which must match, as in a `ResourceRule`. An empty list matches all paths.
    public var paths: [String]
    /// The program, by path or by its name in `PATH`, and its arguments. `{url}` in an argument stands for the URL;
    /// otherwise the URL becomes the last argument.
    public var command: [String]
    /// The longest run: one second to five minutes. A program that takes longer is ended.
    public var timeout: Duration

    /// Creates a resolver for these hosts and paths.
    public init(hosts: [String] = [], paths: [String] = [], command: [String], timeout: Duration = .seconds(30)) {
        (self.hosts, self.paths, self.command, self.timeout) = (hosts, paths, command, timeout)
    }

    package static let timeoutRange = Duration.seconds(1) ... .seconds(300)
}
