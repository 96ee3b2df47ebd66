import Foundation
import TestSupport
import Testing

/// Chromium without a screen, driven over its debugging pipe by the DevTools protocol. One thread uses it. It ends when
/// this object goes.
final class Chromium {
    private let process: ChildProcess
    private let profile: TemporaryDirectory
    /// Two named pipes. Both are held open for both directions, so that neither side waits for the other to open them.
    private let commands: Int32
    private let answers: Int32
    private var received: [UInt8] = []
    private var number = 0
    /// What pages have complained of: uncaught errors, and what a content security policy refused.
    private(set) var complaints: [String] = []
    private var downloads = 0

    /// - Parameter size: of the window, in CSS pixels.
    init(size: (width: Int, height: Int) = (1280, 900)) throws {
        profile = try TemporaryDirectory()
        let (input, output) = (profile.file("commands"), profile.file("answers"))
        guard mkfifo(input, 0o600) == 0, mkfifo(output, 0o600) == 0 else { throw SystemError("mkfifo") }
        commands = open(input, O_RDWR | O_CLOEXEC)
        answers = open(output, O_RDWR | O_CLOEXEC)
        process = try ChildProcess(
            "/bin/sh",
            [
                "-c", "exec \"$0\" \"$@\" 3<'\(input)' 4>'\(output)'", try Player.chromium.location(), "--headless=new",
                "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe", "--no-first-run",
                "--hide-scrollbars", "--autoplay-policy=no-user-gesture-required",
                "--window-size=\(size.width),\(size.height)", "--user-data-dir=\(profile.file("profile"))",
                "about:blank",
            ], environment: ReelcacheCommand.neutral)
    }

    deinit {
        _ = try? ask("Browser.close")
        _ = try? process.waitForExit(andOutput: false)
        close(commands)
        close(answers)
    }

    /// Opens a tab.
    func openTab(_ url: String) throws -> ChromiumTab {
        let target = try ask("Target.createTarget", ["url": "about:blank"])
        let session = try ask(
            "Target.attachToTarget", ["targetId": target["targetId"] as Any, "flatten": true])
        let tab = ChromiumTab(try #require(session["sessionId"] as? String), of: self)
        for domain in ["Runtime", "Log", "Page", "Accessibility"] { try tab.ask("\(domain).enable") }
        try tab.open(url)
        return tab
    }

    /// Sends a command and waits for its result.
    @discardableResult
    func ask(_ method: String, _ parameters: [String: Any] = [:], session: String? = nil) throws -> [String: Any] {
        number += 1
        var command: [String: Any] = ["id": number, "method": method, "params": parameters]
        command["sessionId"] = session
        var bytes = [UInt8](try JSONSerialization.data(withJSONObject: command)) + [0]
        while !bytes.isEmpty {
            let count = write(commands, bytes, bytes.count)
            guard count > 0 else { throw SystemError("write to Chromium") }
            bytes.removeFirst(count)
        }
        while true {
            let message = try nextMessage(for: method)
            guard message["id"] as? Int == number else {
                note(message)
                continue
            }
            if let error = message["error"] as? [String: Any] {
                throw DeadlinePassed(what: method, instead: "\(error["message"] ?? "")")
            }
            return message["result"] as? [String: Any] ?? [:]
        }
    }

    /// Saves what pages let the person save in this directory.
    func saveDownloads(in directory: String) throws {
        try ask(
            "Browser.setDownloadBehavior",
            ["behavior": "allow", "downloadPath": directory, "eventsEnabled": true])
    }

    /// Waits until a file has been saved.
    func waitForDownload() throws {
        while downloads == 0 { note(try nextMessage(for: "with a file")) }
        downloads -= 1
    }

    private func nextMessage(for method: String) throws -> [String: Any] {
        while true {
            if let end = received.firstIndex(of: 0) {
                let message = Data(received[..<end])
                received.removeFirst(end + 1)
                return try #require(JSONSerialization.jsonObject(with: message) as? [String: Any])
            }
            var polled = [pollfd(fd: answers, events: Int16(POLLIN), revents: 0)]
            let milliseconds = Int32(Duration.patience.components.seconds * 1000)
            guard poll(&polled, 1, milliseconds) > 0 else {
                throw DeadlinePassed(what: "Chromium to answer \(method)", instead: process.stderr)
            }
            var buffer = [UInt8](repeating: 0, count: 1 << 16)
            let count = read(answers, &buffer, buffer.count)
            guard count > 0 else { throw SystemError("read from Chromium") }
            received += buffer[..<count]
        }
    }

    private func note(_ message: [String: Any]) {
        guard let parameters = message["params"] as? [String: Any] else { return }
        switch message["method"] as? String {
        case "Runtime.exceptionThrown": complaints.append("\(parameters["exceptionDetails"] ?? "")")
        case "Browser.downloadProgress": downloads += parameters["state"] as? String == "completed" ? 1 : 0
        case "Log.entryAdded":
            let entry = parameters["entry"] as? [String: Any] ?? [:]
            // Refused and interrupted requests are what tests bring about.
            if entry["level"] as? String == "error", entry["source"] as? String != "network" {
                complaints.append("\(entry["text"] ?? "")")
            }
        default: break
        }
    }
}

/// A tab of Chromium.
struct ChromiumTab {
    private let session: String
    private let browser: Chromium

    init(_ session: String, of browser: Chromium) { (self.session, self.browser) = (session, browser) }

    @discardableResult
    func ask(_ method: String, _ parameters: [String: Any] = [:]) throws -> [String: Any] {
        try browser.ask(method, parameters, session: session)
    }

    /// Goes to a URL. Returns when that has begun.
    func open(_ url: String) throws { try ask("Page.navigate", ["url": url]) }

    /// The value of an expression of JavaScript, or of a promise of one.
    @discardableResult
    func evaluate(_ expression: String) throws -> Any? {
        let answer = try ask(
            "Runtime.evaluate",
            ["expression": expression, "awaitPromise": true, "returnByValue": true, "userGesture": true])
        if let details = answer["exceptionDetails"] { throw DeadlinePassed(what: expression, instead: "\(details)") }
        return (answer["result"] as? [String: Any])?["value"]
    }

    func text(_ expression: String) throws -> String { "\(try evaluate(expression) ?? "nothing")" }

    /// Waits until an expression is true. While the page is not there yet, it may throw.
    func wait(for expression: String) throws {
        let end = ContinuousClock.now + .patience
        while ContinuousClock.now < end {
            // The page looks by itself, ten times a second for a while, and this side asks again: pages go and come.
            let look = """
                new Promise(done => { let left = 20; const look = () => {
                    let is = false; try { is = Boolean(\(expression)) } catch {}
                    if (is || left-- == 0) done(is); else setTimeout(look, 100) }; look() })
                """
            if (try? evaluate(look)) as? Bool == true { return }
        }
        throw DeadlinePassed(
            what: expression, instead: "\(try text("document.body?.innerText"))\n\(browser.complaints)")
    }

    // MARK: A person

    /// Presses a key, as `KeyboardEvent.key` names it.
    func press(_ key: String, shift: Bool = false) throws {
        let texts = ["Enter": "\r", " ": " "], codes = ["Enter": 13, "Tab": 9, "Escape": 27, " ": 32]
        var event: [String: Any] = [
            "type": "keyDown", "key": key, "modifiers": shift ? 8 : 0, "windowsVirtualKeyCode": codes[key] ?? 0,
        ]
        event["text"] = texts[key]
        try ask("Input.dispatchKeyEvent", event)
        event["type"] = "keyUp"
        try ask("Input.dispatchKeyEvent", event)
    }

    /// Moves the focus to an element, as its label does, and types or pastes a text in place of what is there.
    func paste(_ text: String, into selector: String) throws {
        try evaluate("document.querySelector('\(selector)').focus(); document.querySelector('\(selector)').select()")
        try ask("Input.insertText", ["text": text])
    }

    /// Clicks on the first element, which is visible then.
    func click(_ selector: String) throws {
        try wait(for: "document.querySelector(`\(selector)`)?.checkVisibility()")
        try evaluate("document.querySelector(`\(selector)`).click()")
    }

    /// The scheme of colours that the person prefers.
    func prefer(_ scheme: String) throws {
        try ask(
            "Emulation.setEmulatedMedia",
            ["features": [["name": "prefers-color-scheme", "value": scheme]]])
    }

    func resize(width: Int, height: Int) throws {
        try ask(
            "Emulation.setDeviceMetricsOverride",
            ["width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600])
    }
}
