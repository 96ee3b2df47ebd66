import Administration
import ArgumentParser
import DiskCache
import Reelcache

struct Verify: PrintingCommand {
    static let configuration = CommandConfiguration(
        abstract: "Read the whole cache and compare checksums.",
        discussion: """
            Exits with 1 if damage was found and left in place.

              reelcache verify
              reelcache verify --repair
            """)

    @Flag(help: "Remove what is damaged: it is fetched again when it is requested.")
    var repair = false
    @OptionGroup var printing: PrintingOptions

    func run() throws {
        let interruption = Interruption()
        let configuration = try printing.cache.configuration
        let progress = ProgressLine()
        defer { progress.clear() }
        let report = try configuration.verify(repairs: repair) { far in
            if let far {
                progress.show(
                    "verify: \(far.resources.grouped) of \(far.totalResources.of("resource")), \(far.bytes.size) of \(far.totalBytes.size)"
                )
            }
            return !interruption.isRequested
        }
        progress.clear()
        try printing.print(report, configuration, text: Self.lines(report).joined(separator: "\n"))
        if !report.isComplete || !report.isSound && !report.isRepaired { throw ExitCode(1) }
    }

    private static func lines(_ report: CacheValidation) -> [String] {
        var lines = ["read \(report.resources.of("resource")), \(report.chunks.of("chunk")), \(report.bytes.size)"]
        lines += report.damaged.map {
            "damaged   \($0.urlText): \($0.chunks.of("chunk")), bytes \($0.spans.text(atMost: 3))"
        }
        lines += report.missingFiles.map { "damaged   \($0): its file is gone" }
        lines += report.damagedRows.map { "damaged   \($0): its entry in the index is invalid" }
        if report.orphanedFiles > 0 {
            lines.append(
                "orphaned  \(report.orphanedFiles.of("file")) of no resource, \(report.orphanedBytes.size)")
        }
        if !report.isComplete { lines.append("interrupted before everything was read") }
        return report.isComplete || !report.isSound ? lines + [verdict(report)] : lines
    }

    private static func verdict(_ report: CacheValidation) -> String {
        if report.isSound { return "everything is sound" }
        return report.isRepaired
            ? "repaired: what was damaged is fetched again when it is requested"
            : "nothing was changed: reelcache verify --repair removes what is damaged"
    }
}
