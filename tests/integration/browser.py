"""A headless Chromium, driven over the DevTools protocol through a pair of pipes: no driver, no package of Python's."""
import base64
import json
import os
import pathlib
import select
import shutil
import subprocess
import time

PROGRAMS = ("chromium-headless-shell", "/usr/lib/chromium/chromium-headless-shell", "chromium")


def chromium():
    return next((found for name in PROGRAMS if (found := shutil.which(name))), None)


class Browser:
    """One page. Collects console messages, uncaught errors and the addresses of all requests."""

    def __init__(self, folder, width=1200, height=900, dark=False):
        to_child, self._write = os.pipe()
        self._read, from_child = os.pipe()
        # Chromium reads commands from descriptor 3 and writes answers to descriptor 4.
        script = 'exec 3<&"$1" 4>&"$2"; shift 2; exec "$@"'
        self._log = open(pathlib.Path(folder) / "chromium.log", "ab")
        self.process = subprocess.Popen(
            ["/bin/bash", "-c", script, "sh", str(to_child), str(from_child), chromium(), "--headless", "--no-sandbox",
             "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
             "--disable-extensions", "--disable-component-update", "--disable-sync", "--remote-debugging-pipe",
             f"--user-data-dir={folder}/profile", f"--window-size={width},{height}", "about:blank"],
            pass_fds=(to_child, from_child), stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log,
            start_new_session=True)
        os.close(to_child), os.close(from_child)
        self._bytes = b""
        self._number = 0
        self._session = None
        self.errors, self.requests, self.navigations = [], [], 0
        (target,) = [one for one in self.call("Target.getTargets")["targetInfos"] if one["type"] == "page"][:1]
        self._session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=width < 600)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def _receive(self, end):
        while b"\0" not in self._bytes:
            ready, _, _ = select.select([self._read], [], [], max(0, end - time.monotonic()))
            chunk = os.read(self._read, 1 << 20) if ready else b""
            if not chunk:
                raise AssertionError("the browser does not answer")
            self._bytes += chunk
        message, _, self._bytes = self._bytes.partition(b"\0")
        return json.loads(message)

    def _note(self, message):
        kind, what = message.get("method"), message.get("params", {})
        if kind == "Network.requestWillBeSent":
            self.requests.append(what["request"]["url"])
        elif kind == "Runtime.exceptionThrown":
            self.errors.append(what["exceptionDetails"].get("exception", {}).get("description", "?"))
        elif kind == "Runtime.consoleAPICalled" and what["type"] in ("error", "warning", "assert"):
            self.errors.append(str(what["args"]))
        elif kind == "Log.entryAdded" and what["entry"]["level"] in ("error", "warning"):
            self.errors.append(what["entry"]["text"] + " " + what["entry"].get("url", ""))
        elif kind == "Page.frameNavigated":
            self.navigations += 1

    def call(self, method, limit=30, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + limit
        while True:
            answer = self._receive(end)
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer)
                return answer["result"]
            self._note(answer)

    def open(self, address):
        return self.call("Page.navigate", url=address)

    def run(self, script):
        """The value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def text(self, selector="body"):
        return self.run(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''")

    def press(self, key):
        """A key without text: "Tab", "Enter", "ArrowRight"."""
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowRight": 39}
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=codes[key],
                      **(text if kind == "keyDown" else {}))

    def picture(self, path):
        """The whole page, as PNG."""
        data = self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(5)
        for fd in (self._read, self._write):
            os.close(fd)
        self._log.close()
