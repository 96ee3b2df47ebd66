import ArgumentParser
import ControlAPI
import Downloads
import Foundation
import HTTPModel
import Reelcache

struct History: JSONCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show the downloads that have ended, newest first.",
        discussion: """
            The last 1,000 are kept; reelcache downloads clear forgets them.

              reelcache history --limit 20
              reelcache history --category podcasts
              reelcache history --failed
            """)

    @Option(help: ArgumentHelp("Limit the list to this many downloads. (default: all)", valueName: "number"))
    var limit: Int?
    @Option(
        help: ArgumentHelp("List only downloads of this category.", valueName: "name"), completion: .known(.categories))
    var category: String?
    @Flag(help: "List only those that failed.")
    var failed = false
    @Flag(name: .shortAndLong, help: "On a terminal, list URLs in place of names.")
    var long = false
    @Flag(help: "Print a JSON array with everything known about each.")
    var json = false
    @OptionGroup var secret: SecretOptions
    @OptionGroup var cache: CacheOptions

    func validate() throws {
        if let limit, limit < 1 { throw ValidationError("--limit \(limit) shows nothing: write 1 or more") }
    }

    func run() throws {
        let configuration = try cache.configuration
        let reports = try configuration.withProxy(orElse: []) {
            try $0.history(limit: limit, category: category, state: failed ? .failed : nil)
        }
        guard !json else { return print(try secret.json(reports, configuration)) }
        let table = DownloadTable(
            width: Terminal.width, isUnicode: Terminal.isUnicode, now: Int64(time(nil)),
            mask: try secret.mask(configuration), isLong: long)
        for line in table.history(reports) { print(line) }
        let bytes = reports.filter { $0.state == .completed }.reduce(0) { $0 +| $1.bytes }
        print("\(reports.count.of("download")); \(bytes.size) completed")
    }
}
