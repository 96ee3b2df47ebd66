import Testing
import Upstream

@testable import ReelcacheCLI

/// What each check makes of what was seen.
@Suite struct FindingTests {
    private func severities(_ findings: [Finding]) -> [Finding.Severity] { findings.map(\.severity) }

    @Test func aLineSaysHowItIsAndWhatToDo() {
        #expect(Finding.ok("port", "it is free").line == "ok       port: it is free")
        #expect(Finding.warning("port", "it is odd", "look").line == "warning  port: it is odd; look")
        #expect(Finding.problem("port", "it is bad", "mend").line == "problem  port: it is bad; mend")
        #expect(Finding.Severity.ok < .warning && .warning < .problem)
    }

    // MARK: The disk

    private func directory(_ place: DirectoryFacts.Place, user: UInt32 = 1000, magic: Int64 = 0xEF53) -> [Finding] {
        DirectoryFacts(path: "/c", place: place, user: user, fileSystem: FileSystemKind(magic: magic)).findings
    }

    @Test(
        arguments: [
            (.missing(above: "/", canBeMade: true), .ok, "/c does not exist yet: the proxy creates it"),
            (.missing(above: "/", canBeMade: false), .problem, "/c cannot be created, because / is not writable"),
            (.notDirectory, .problem, "/c is not a directory"),
            (.unreachable("Permission denied"), .problem, "/c cannot be reached: Permission denied"),
            (.directory(owner: 1000, mode: 0o700, isWritable: true), .ok, "/c is writable"),
            (.directory(owner: 1000, mode: 0o755, isWritable: true), .warning, "other users can look into /c"),
            (.directory(owner: 1001, mode: 0o700, isWritable: true), .warning, "/c belongs to user 1001"),
            (
                .directory(owner: 1001, mode: 0o700, isWritable: false), .problem,
                "/c is not writable, and belongs to user 1001"
            ),
            (
                .directory(owner: 1000, mode: 0o500, isWritable: false), .problem,
                "/c is not writable, and its permissions keep you out"
            ),
        ] as [(DirectoryFacts.Place, Finding.Severity, String)])
    func theDirectoryIsJudgedByWhoCanUseIt(place: DirectoryFacts.Place, severity: Finding.Severity, text: String) {
        let finding = directory(place)[0]
        #expect(finding.severity == severity && finding.text == text)
        #expect((finding.advice == nil) == (severity == .ok))
    }

    /// What belongs to a household is looked at by root.
    @Test func rootMayLookAtOthersDirectories() {
        #expect(directory(.directory(owner: 1, mode: 0o700, isWritable: true), user: 0)[0].severity == .ok)
    }

    @Test(
        arguments: [
            (0xEF53, .ok), (0x9123_683E, .ok), (0x1234_5678, .ok), (0x0102_1994, .warning), (0x6573_5546, .warning),
            (0x6969, .problem), (0xFF53_4D42, .problem), (0x4D44, .problem),
        ] as [(Int64, Finding.Severity)])
    func fileSystemsAreJudgedByTheirKind(magic: Int64, severity: Finding.Severity) {
        #expect(directory(.notDirectory, magic: magic)[1].severity == severity)
        #expect(FileSystemKind(magic: magic, isReadOnly: true).findings(of: "/c")[0].severity == .problem)
    }

    @Test(
        arguments: [
            (100, 0, 20, 1, .ok), (10, 0, 20, 1, .warning), (10, 15, 20, 1, .ok), (1, 0, 20, 2, .problem),
            (0, 30, 20, 1, .ok), (0, 0, 20, 0, .problem), (Int64.max / 1_000_000_000, 1, 20, 1, .ok),
        ] as [(Int64, Int64, Int64, Int64, Finding.Severity)])
    func spaceIsWhatTheCacheCanHave(
        free: Int64, cached: Int64, maxSize: Int64, minFree: Int64, severity: Finding.Severity
    ) {
        let giga: Int64 = 1_000_000_000
        let facts = SpaceFacts(
            free: free * giga, cached: cached * giga, maxSize: maxSize * giga, minFree: minFree * giga)
        #expect(facts.finding.severity == severity, "\(facts.finding)")
    }

    @Test func holesAreNeededAndReflinksAreNot() {
        func facts(_ holes: SparseFacts.Trial, reportsHoles: Bool = true, _ reflinks: SparseFacts.Trial) -> [Finding
            .Severity]
        {
            severities(SparseFacts(holes: holes, reportsHoles: reportsHoles, reflinks: reflinks).findings)
        }
        #expect(facts(.works, .works) == [.ok, .ok])
        #expect(facts(.refused, .refused) == [.warning, .ok])
        #expect(facts(.works, reportsHoles: false, .works) == [.warning, .ok])
        #expect(facts(.untried("full"), .untried("full")) == [.ok, .ok])
    }

    // MARK: The machine

    @Test(
        arguments: [(100, .problem), (200, .warning), (4095, .warning), (4096, .ok), (1 << 20, .ok)]
            as [(Int, Finding.Severity)])
    func filesAreCounted(most: Int, severity: Finding.Severity) {
        #expect(FileLimitFacts(most: most, needed: 150).finding.severity == severity)
    }

    @Test(
        arguments: [
            (1_000_000, 1_000_000, nil, .ok), (900_000, 1_000_000, nil, .problem), (950_000, 1_000_000, nil, .ok),
            (1_000_000, 0, 1_000_300, .ok), (1_000_000, 0, 1_000_301, .warning), (1_000_000, 0, 999_699, .warning),
            (0, .max, nil, .problem), (.max, 0, .min, .warning),
        ] as [(Int64, Int64, Int64?, Finding.Severity)])
    func theClockIsComparedWithTheProgramAndTheOrigin(
        now: Int64, built: Int64, origin: Int64?, severity: Finding.Severity
    ) {
        #expect(ClockFacts(now: now, built: built, origin: origin).finding.severity == severity)
    }

    @Test func theDifferenceOfClocksIsSaid() {
        let behind = ClockFacts(now: 1_000_000, built: 0, origin: 1_007_200).finding.text
        #expect(behind.contains("2 h behind the origin's") || behind.contains("2h behind the origin's"), "\(behind)")
        #expect(ClockFacts(now: 1_007_200, built: 0, origin: 1_000_000).finding.text.contains("ahead of"))
    }

    @Test func namesNeedAServer() {
        #expect(NameFacts(servers: 1, resolvesLocalhost: true).finding.text == "1 name server")
        #expect(NameFacts(servers: 0, resolvesLocalhost: true).finding.severity == .warning)
        #expect(NameFacts(servers: nil, resolvesLocalhost: true).finding.severity == .warning)
        #expect(NameFacts(servers: 2, resolvesLocalhost: false).finding.severity == .problem)
    }

    @Test func certificatesAreCounted() {
        func facts(_ file: String?, _ count: Int?, isConfigured: Bool = false) -> Finding {
            CertificateFacts(file: file, isConfigured: isConfigured, count: count).finding
        }
        #expect(facts("/a", 140).severity == .ok && facts(nil, nil).severity == .problem)
        #expect(facts("/a", nil).advice == "reinstall ca-certificates")
        #expect(facts("/a", 0, isConfigured: true).advice == "set ca_file to a readable PEM file")
    }

    @Test func programsOfResolversAreFound() {
        #expect(ResolverFacts(programs: [], missing: []).finding == nil)
        #expect(ResolverFacts(programs: ["yt-dlp"], missing: []).finding?.severity == .ok)
        let missing = ResolverFacts(programs: ["sh", "/opt/x\u{1B}"], missing: ["/opt/x\u{1B}"]).finding
        #expect(missing?.severity == .warning && missing?.text.contains("\u{1B}") == false)
    }

    @Test(
        arguments: [
            ([:], .ok), (["http_proxy": ""], .ok), (["http_proxy": "http://secret@p"], .warning),
            (["ALL_PROXY": "p"], .warning),
            (["http_proxy": "p", "no_proxy": "a, 127.0.0.1"], .ok), (["http_proxy": "p", "NO_PROXY": "*"], .ok),
            (["http_proxy": "p", "no_proxy": "localhost"], .warning), (["https_proxy": "p"], .ok),
        ] as [([String: String], Finding.Severity)])
    func proxiesOfTheNetworkAreInTheWay(environment: [String: String], severity: Finding.Severity) {
        let finding = ProxyVariableFacts(environment, host: "127.0.0.1").finding
        #expect(finding.severity == severity && !finding.line.contains("secret"))
    }

    // MARK: The proxy

    @Test(
        arguments: [
            (.free, .ok), (.any, .ok), (.ours, .ok), (.otherProxy(version: "1"), .problem), (.taken(by: nil), .problem),
            (.taken(by: "nginx (process 7)"), .problem), (.refused("Permission denied"), .problem),
        ] as [(PortFacts, Finding.Severity)])
    func thePortIsFreeOrOurs(facts: PortFacts, severity: Finding.Severity) {
        let finding = facts.finding("127.0.0.1:7335")
        #expect(finding.severity == severity)
        if case .taken(let program?) = facts { #expect(finding.text == "\(program) has 127.0.0.1:7335") }
    }

    @Test func theRunningProxyIsTheSameVersionOfTheSameCache() {
        func findings(_ facts: RunningFacts) -> [Finding.Severity] {
            severities(facts.findings(version: "2", directory: "/c"))
        }
        func answers(_ version: String, _ directory: String?, _ isWhereWanted: Bool) -> RunningFacts {
            .answers(pid: 7, url: "http://u", version: version, directory: directory, isWhereWanted: isWhereWanted)
        }
        #expect(findings(.none) == [.ok] && findings(.owned(pid: 7)) == [.warning])
        #expect(findings(.silent(pid: 7, url: "u", reason: "no")) == [.problem])
        #expect(findings(answers("2", "/c", true)) == [.ok] && findings(answers("2", nil, true)) == [.ok])
        #expect(findings(answers("1", "/d", false)) == [.warning, .warning, .warning])
        let line = answers("1", "/c", true).findings(version: "2", directory: "/c")[0].line
        #expect(line.contains("version 1 is running, but this is 2") && line.contains("stop process 7)"), "\(line)")
    }

    // MARK: A URL

    @Test func rulesAreTold() {
        func severity(_ change: (inout RuleFacts) -> Void) -> Finding.Severity {
            var facts = RuleFacts(url: "http://a")
            change(&facts)
            return facts.finding.severity
        }
        #expect(severity { _ in } == .ok && severity { $0.largestStored = 5 } == .ok)
        #expect(severity { $0.isServed = false } == .problem)
        #expect(severity { $0.isOffline = true } == .warning && severity { $0.bypasses = true } == .warning)
    }

    @Test func privateHostsGetTheLineThatAllowsThem() {
        let refused = AddressFacts(host: "nas.local", addresses: ["10.0.0.1"], refused: "10.0.0.1").finding
        #expect(refused.severity == .problem && refused.advice == "add to the configuration: allow: [nas.local]")
        #expect(AddressFacts(host: "a", addresses: ["9.9.9.9"]).finding.severity == .ok)
        #expect(AddressFacts(host: "a", addresses: []).finding.severity == .problem)
    }

    private static let good = AnswerHead(status: 206, hasRanges: true, hasValidator: true, length: 5, type: "video/mp4")

    private func head(_ change: (inout AnswerHead) -> Void = { _ in }) -> AnswerFacts {
        var head = Self.good
        change(&head)
        return .head(head)
    }

    @Test func originsAreJudgedByWhatTheyAnswer() {
        #expect(severities(head().originFindings) == [.ok])
        #expect(severities(head { $0.hasRanges = false }.originFindings) == [.warning])
        #expect(
            severities(head { ($0.hasRanges, $0.hasValidator) = (false, false) }.originFindings) == [
                .warning, .warning,
            ])
        #expect(severities(head { $0.type = "text/HTML; charset=utf-8" }.originFindings) == [.warning])
        for status in [301, 401, 403, 404, 416, 429, 500, 503] {
            #expect(severities(head { $0.status = status }.originFindings) == [.problem], "\(status)")
        }
        for error in [
            UpstreamError.tls(host: "a", detail: "expired"), .cannotResolve(host: "a"),
            .addressRefused(host: "a", address: "10.0.0.1"), .timedOut(host: "a", phase: .connect),
            .cannotConnect(host: "a", detail: "refused"),
        ] {
            #expect(severities(AnswerFacts.failed(error).originFindings) == [.problem], "\(error)")
        }
    }

    @Test func theProxyIsComparedWithTheOrigin() {
        func severity(_ proxy: AnswerFacts, _ origin: AnswerFacts) -> Finding.Severity {
            proxy.proxyFinding(origin, url: "u").severity
        }
        let lost = AnswerFacts.failed(.cannotConnect(host: "a", detail: "refused"))
        #expect(severity(head(), head()) == .ok && severity(head(), lost) == .ok)
        #expect(severity(lost, head()) == .problem)
        #expect(severity(head { $0.length = 6 }, head()) == .warning)
        #expect(severity(head { $0.status = 502 }, head()) == .problem)
        #expect(severity(head { $0.status = 404 }, head { $0.status = 404 }) == .problem)
        let refused = head { $0.status = 403 }.proxyFinding(head(), url: "u")
        #expect(refused.advice == "add the host to allow, and reload the proxy")
        for status in [403, 421] {
            let both = head { $0.status = status }
            #expect(both.proxyFinding(both, url: "u").advice == "see the finding about the origin")
        }
        // A playlist is sent with other URLs in it.
        let playlist = head { ($0.length, $0.type) = (6, "application/vnd.apple.mpegurl") }
        #expect(severity(playlist, head { $0.type = "application/vnd.apple.mpegurl" }) == .ok)
    }
}
