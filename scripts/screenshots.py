#!/usr/bin/env python3
"""Takes the dashboard's pictures with Chromium, over its debugging pipe: screenshots.py LINK DIRECTORY"""
import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

PICTURES = [("light", "light", 1100, 1000), ("dark", "dark", 1100, 1000), ("phone", "light", 390, 844)]
READY = """
    document.querySelector("#state").textContent == "Live" && document.body.classList.contains("signed-in")
    && document.querySelectorAll("#plays .strip").length == 2 && document.querySelector("#downloads-list .card")
    && document.querySelectorAll("#cache-list .strip").length >= 4 && !document.querySelector("#news.error:not([hidden])")
    && [...document.querySelectorAll("#plays .strip")].every(one => one.dataset.cached > 20)
"""


class Browser:
    def __init__(self, profile):
        commands, self.sent = os.pipe()
        received, answers = os.pipe()
        self.process = subprocess.Popen(
            ["sh", "-c", f'exec "$0" "$@" 3<&{commands} 4>&{answers}', shutil.which("chromium"), "--headless=new", "--no-sandbox",
             "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(commands, answers), stderr=subprocess.DEVNULL)
        os.close(commands), os.close(answers)
        self.stream, self.number, self.session = os.fdopen(received, "rb"), 0, None
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def ask(self, method, **parameters):
        self.number += 1
        command = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            command["sessionId"] = self.session
        os.write(self.sent, json.dumps(command).encode() + b"\0")
        while True:
            text = b""
            while not text.endswith(b"\0"):
                byte = self.stream.read(1)
                if not byte:
                    sys.exit("screenshots: the browser has ended")
                text += byte
            answer = json.loads(text[:-1])
            if answer.get("id") == self.number:
                return answer.get("result", {})

    def evaluate(self, expression):
        return self.ask("Runtime.evaluate", expression=expression, returnByValue=True).get("result", {}).get("value")

    def wait(self, expression):
        for _ in range(600):
            if self.evaluate(f"Boolean({expression})"):
                return
            time.sleep(0.1)
        sys.exit(f"screenshots: waited in vain for {expression}: {self.evaluate('document.body.innerText')}")

    def close(self):
        self.ask("Browser.close")
        self.process.wait()


def main():
    link, directory = sys.argv[1:]
    with tempfile.TemporaryDirectory() as profile:
        browser = Browser(profile)
        browser.ask("Page.navigate", url=link)
        for name, scheme, width, height in PICTURES:
            browser.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
            browser.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
            # Plots are drawn near the window.
            browser.wait('(document.querySelector(".plots").scrollIntoView(), document.querySelector(".plot path"))')
            browser.evaluate("scrollTo(0, 0)")
            browser.wait(READY)
            picture = base64.b64decode(browser.ask("Page.captureScreenshot", format="png")["data"])
            path = os.path.join(directory, f"dashboard-{name}.png")
            with open(path, "wb") as file:
                file.write(picture)
            print(f"screenshots: wrote {path}, {len(picture)} bytes")
        browser.close()


if __name__ == "__main__":
    main()
