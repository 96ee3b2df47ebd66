import TestSupport
import Testing
import Upstream

@Suite struct TLSTests {
    private let directory: TemporaryDirectory
    private let server: ChildProcess
    private let port: Int

    init() throws {
        directory = try TemporaryDirectory()
        let key = directory.file("key.pem"), certificate = directory.file("cert.pem")
        let made = try ChildProcess.run(
            "/usr/bin/openssl",
            [
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key,
                "-out", certificate,
                "-days", "2", "-subj", "/CN=reelcache test", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
            ])
        try #require(made.exit == .exited(0), "\(made.stderr)")
        server = try ChildProcess(
            "/usr/bin/openssl", ["s_server", "-accept", "0.0.0.0:0", "-cert", certificate, "-key", key, "-www"])
        let line = try server.waitForLine(containing: "ACCEPT")
        port = try #require(line.split(separator: ":").last.flatMap { Int($0) }, "\(line)")
    }

    @Test func certificateOfAGivenAuthorityIsTrusted() throws {
        let upstreams = try Upstreams(UpstreamSettings(caFile: directory.file("cert.pem")))
        let (recorder, error) = try upstreams.fetch("https://localhost:\(port)/")
        #expect(error == nil)
        #expect(recorder.heads.map(\.status) == [200])
        #expect(!recorder.body.isEmpty)
    }

    @Test func certificateOfNoKnownAuthorityIsNot() throws {
        let error = try Upstreams().fetch("https://localhost:\(port)/").error
        guard case .tls(host: "localhost", let detail) = error else {
            Issue.record("\(String(describing: error)) is not .tls")
            return
        }
        #expect(detail.contains("self-signed") || detail.contains("self signed"), "\(detail)")
        #expect(error?.isTransient == false)
    }

    @Test func certificateForAnotherNameIsNot() throws {
        let upstreams = try Upstreams(allow: ["127.0.0.0/8"], UpstreamSettings(caFile: directory.file("cert.pem")))
        guard case .tls(host: "127.0.0.2", _) = try upstreams.fetch("https://127.0.0.2:\(port)/").error else {
            Issue.record("a certificate for 127.0.0.1 was taken for 127.0.0.2")
            return
        }
    }
}
