import Foundation
import TestSupport
import Testing

/// Chromium without a screen, told over its debugging pipe what to do.
enum Browser {
    private static let script = #"""
        import json, os, subprocess, sys
        browser, profile, url, expression = sys.argv[1:5]
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
        while True:
            result = ask("Runtime.evaluate", session, expression=expression, awaitPromise=True).get("result", {})
            if "value" in result: break
        print(result["value"])
        ask("Browser.close")
        child.wait()
        """#

    /// Opens a URL in a tab of its own, as a person does, and says what `expression` comes to there.
    /// - Parameter expression: of JavaScript, or a promise of one. It is asked again where it has no value, as before the
    ///   page is there.
    static func open(_ url: String, evaluating expression: String) throws -> String {
        let profile = try TemporaryDirectory()
        // For an expression of several steps, each of which may take its time.
        let outcome = try Player.python3.run(
            ["-c", script, try Player.chromium.location(), profile.path, url, expression], within: .seconds(900))
        #expect(outcome.exit == .exited(0), "\(outcome)")
        return outcome.stdout
    }
}
