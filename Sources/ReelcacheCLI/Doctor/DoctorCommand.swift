import ArgumentParser
import ControlAPI
import HTTPModel
import Reelcache

struct DoctorCommand: JSONCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor", abstract: "Find out what keeps the proxy from working.",
        discussion: """
            Checks the configuration, the cache directory and its disk, the limits and the clock of the machine, the port, the running proxy, \
            name servers and certificates. Prints one line for each: ok, warning or problem, and what to do. \
            Exits with 1 if there is a problem.

            If you name a URL, also checks its origin, and whether a player reaches it through the proxy. Of a page, it \
            runs the resolver, and checks the origin of the media. \
            Without a URL, nothing leaves this machine.

              reelcache doctor
              reelcache doctor https://example.org/film.mp4
            """)

    @Argument(
        help: "A URL that does not play: a media URL, or the one that a player opens for it.",
        completion: .known(.urls))
    var url: String?
    @Flag(help: "Print JSON.")
    var json = false
    @OptionGroup var cache: CacheOptions

    private struct Report: Encodable {
        let ok: Bool
        let findings: [Finding]
    }

    func run() throws {
        let findings = Examination(cache.sources(), url: url).findings()
        let isWell = findings.allSatisfy { $0.severity < .problem }
        print(
            json
                ? try ControlJSON.pretty(Report(ok: isWell, findings: findings))
                : findings.map(\.line.printable).joined(separator: "\n"))
        if !isWell { throw ExitCode(1) }
    }
}
