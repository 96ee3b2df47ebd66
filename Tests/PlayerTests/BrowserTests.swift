import Foundation
import TestSupport
import Testing

/// A browser plays what the proxy gives it.
@Suite(Player.areExpected(.ffmpeg, .chromium, .python3))
struct BrowserTests {
    /// Opens a URL in a tab of its own, as a person does, and says whether the film in it plays.
    private static let script = #"""
        import json, os, subprocess, sys
        browser, profile, url = sys.argv[1:4]
        commands, sent = os.pipe()
        received, answers = os.pipe()
        child = subprocess.Popen(
            ["sh", "-c", 'exec "$0" "$@" 3<&%d 4>&%d' % (commands, answers), browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--remote-debugging-pipe", "--autoplay-policy=no-user-gesture-required", "--user-data-dir=" + profile, "about:blank"],
            pass_fds=(commands, answers), stderr=subprocess.DEVNULL)
        os.close(commands), os.close(answers)
        stream, number = os.fdopen(received, "rb"), 0
        def message():
            text = b""
            while not text.endswith(b"\0"):
                byte = stream.read(1)
                if not byte: sys.exit("the browser has ended")
                text += byte
            return json.loads(text[:-1])
        def ask(method, session=None, **parameters):
            global number
            number += 1
            command = {"id": number, "method": method, "params": parameters}
            if session: command["sessionId"] = session
            os.write(sent, json.dumps(command).encode() + b"\0")
            while True:
                answer = message()
                if answer.get("id") == number: return answer.get("result", {})
        target = ask("Target.createTarget", url="about:blank")["targetId"]
        session = ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        ask("Page.navigate", session, url=url)
        # While it chooses its source, it has none either.
        look = """new Promise(done => { let without = 0; const look = () => { const film = document.querySelector("video");
            without = film && film.networkState == 3 ? without + 1 : 0;
            if (film && film.error || without == 100) done("dead"); else if (film && film.readyState >= 3) done("plays"); else setTimeout(look, 50) }; look() })"""
        while True:
            result = ask("Runtime.evaluate", session, expression=look, awaitPromise=True).get("result", {})
            if "value" in result: break
        print(result["value"])
        ask("Browser.close")
        child.wait()
        """#

    private func play(_ url: String) throws -> String {
        let profile = try TemporaryDirectory()
        let outcome = try Player.python3.run(["-c", Self.script, try Player.chromium.location(), profile.path, url])
        #expect(outcome.exit == .exited(0), "\(outcome)")
        return outcome.stdout
    }

    /// In a sandbox its origin would be none, and the browser would not read it.
    @Test func privateVideoPlaysInATabOfItsOwn() throws {
        let cinema = try Cinema(.mp4MoovFront)
        #expect(try play(cinema.proxyURL) == "plays\n", "new")
        #expect(try play(cinema.proxyURL) == "plays\n", "cached")
        try cinema.close()
    }
}
