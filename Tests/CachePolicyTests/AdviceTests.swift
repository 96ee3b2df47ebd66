import CachePolicy
import Testing

/// What helps against an error, for those who change settings and for those who give flags.
@Suite struct AdviceTests {
    private struct Sample: AdvisedError {
        let reason = "it is broken"
        var advice: Advice?
    }

    @Test(
        arguments: [
            (.allow(host: "nas.local"), "add nas.local to allow", "use --allow nas.local"),
            (.otherDirectory, "choose another cache directory", "choose another --cache-dir"),
            (.stopOwner, "stop it or choose another cache directory", "stop it or choose another --cache-dir"),
            (
                .laterVersion, "use that version, or choose another cache directory",
                "use that version, or choose another --cache-dir"
            ),
            (
                .otherPort, "another process has this port, choose another",
                "another process has this port, choose another with --listen"
            ),
            (.cancel(download: 3), "cancel it first", "cancel it first: reelcache downloads cancel 3"),
        ] as [(Advice, String, String)])
    func adviceIsWordedForWhoReadsIt(advice: Advice, settings: String, flags: String) {
        let error = Sample(advice: advice)
        #expect("\(error)" == "it is broken; \(settings)" && error.text(in: .flags) == "it is broken; \(flags)")
        #expect("\(Sample())" == "it is broken")
    }
}
