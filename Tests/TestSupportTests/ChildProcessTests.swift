import Foundation
import Testing
import TestSupport

@Suite struct ChildProcessTests {
    @Test func outputAndStatusOfAProgramThatEnded() throws {
        let outcome = try ChildProcess.run(
            "/bin/sh", ["-c", "echo out $A; echo err >&2; printf rest; exit 3"], environment: ["A": "1"])
        #expect(outcome.exit == .exited(3) && outcome.stdout == "out 1\nrest" && outcome.stderr == "err\n")
    }

    @Test func lineIsWaitedForAndTheProgramTerminated() throws {
        let child = try ChildProcess("/bin/sh", ["-c", "echo starting; echo ready on 80 >&2; exec tail -f /dev/null"])
        #expect(try child.waitForLine(containing: "ready", on: .stderr) == "ready on 80")
        #expect(child.exit == nil)
        #expect(try child.terminate() == .signalled(SIGTERM))
        #expect(child.stdout == "starting\n")
        child.signal(SIGTERM)
    }

    @Test func streamThatEndsWithoutTheLineIsAFailureAtOnce() throws {
        let child = try ChildProcess("/bin/sh", ["-c", "echo other"])
        let error = try #require(throws: DeadlinePassed.self) { try child.waitForLine(containing: "ready") }
        #expect("\(error)".contains("stdout: other"))
    }

    @Test func killedProgramSaysSo() throws {
        let child = try ChildProcess("/bin/sh", ["-c", "trap '' TERM; echo up; while :; do read x < /dev/zero; done"])
        try child.waitForLine(containing: "up")
        child.signal(SIGTERM)
        #expect(try child.killNow() == .signalled(SIGKILL))
    }

    @Test func missingProgramThrows() {
        #expect(throws: SystemError("start /no/such/program", ENOENT)) { try ChildProcess("/no/such/program") }
    }
}
