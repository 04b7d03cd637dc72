#!/usr/bin/python3
"""Tests the chat's page in headless Chromium: browser_test.py CHAT [DIRECTORY]

Two tabs are in one room; a message written in one appears in the other, always as text. With a directory, the test
leaves screenshots there. Chromium is controlled by its DevTools protocol. Prints TAP.
"""
import asyncio
import base64
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.request

try:
    import websockets
except ImportError:
    websockets = None

chat, directory = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
NASTY = "<img src=x onerror=\"document.title='broken'\"> & <b>bold</b>"


class Tab:
    """A page, controlled by the DevTools protocol."""

    def __init__(self, socket):
        self.socket, self.number, self.said, self.is_loaded = socket, 0, [], False

    async def call(self, method, **parameters):
        self.number += 1
        await self.socket.send(json.dumps({"id": self.number, "method": method, "params": parameters}))
        while True:
            answer = json.loads(await asyncio.wait_for(self.socket.recv(), 20))
            if answer.get("id") == self.number:
                assert "error" not in answer, answer
                return answer["result"]
            self.note(answer)

    def note(self, event):
        """The errors that the page reports, and whether it is loaded."""
        self.is_loaded = self.is_loaded or event.get("method") == "Page.loadEventFired"
        if event.get("method") == "Runtime.exceptionThrown":
            self.said.append(event["params"]["exceptionDetails"]["text"])
        if event.get("method") == "Log.entryAdded" and event["params"]["entry"]["level"] == "error":
            self.said.append(event["params"]["entry"]["text"])

    async def go(self, url):
        self.is_loaded = False
        await self.call("Page.navigate", url=url)
        while not self.is_loaded:
            self.note(json.loads(await asyncio.wait_for(self.socket.recv(), 20)))

    async def value(self, expression):
        result = await self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    async def until(self, expression):
        """Waits until a condition holds: the page evaluates it at each change."""
        script = f"""new Promise((done, failed) => {{
            const look = () => {{ if ({expression}) {{ watcher.disconnect(); clearTimeout(late); done(true); }} }};
            const watcher = new MutationObserver(look);
            const late = setTimeout(() => failed(new Error('it was never so')), 15000);
            watcher.observe(document, {{subtree: true, childList: true, attributes: true, characterData: true}});
            look();
        }})"""
        try:
            await self.value(script)
        except AssertionError as error:
            raise AssertionError(f"it was never so: {expression}") from error

    async def type(self, text):
        await self.call("Input.insertText", text=text)

    async def key(self, key):
        for kind in ("keyDown", "keyUp"):
            await self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=13,
                            text="\r" if kind == "keyDown" else "")

    async def look(self, theme, width, height, name):
        """Sets a theme and a size, and takes a screenshot."""
        await self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
        await self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                        mobile=width < 600)
        assert await self.value(f"document.documentElement.scrollWidth <= {width}"), "wider than the screen"
        if directory:
            picture = await self.call("Page.captureScreenshot", format="png")
            with open(os.path.join(directory, name + ".png"), "wb") as file:
                file.write(base64.b64decode(picture["data"]))


async def open_tab(debugger, url):
    request = urllib.request.Request(f"http://127.0.0.1:{debugger}/json/new?about:blank", method="PUT")
    target = json.load(urllib.request.urlopen(request))
    tab = Tab(await websockets.connect(target["webSocketDebuggerUrl"], max_size=None))
    for domain in ("Runtime", "Log", "Page"):
        await tab.call(domain + ".enable")
    await tab.go(url)
    return tab


async def come_in(tab, name):
    await tab.value(f"document.getElementById('name').value = {json.dumps(name)}; document.getElementById('name').focus()")
    await tab.key("Enter")
    await tab.until("!document.getElementById('chat').hidden")


def says(name, text):
    return (f"[...document.querySelectorAll('.message')].some(item => item.querySelector('b').textContent === "
            f"{json.dumps(name)} && item.querySelector('p').textContent === {json.dumps(text)})")


async def two_tabs(debugger, port, server):
    url = f"http://127.0.0.1:{port}/#kitchen"
    ana, bo = await open_tab(debugger, url), await open_tab(debugger, url)
    await ana.look("light", 390, 780, "door-light-phone")
    await ana.key("Enter")  # without a name
    await ana.until("document.getElementById('error').textContent !== ''")
    await come_in(ana, "Ana")
    await come_in(bo, "Bo")
    await ana.until("document.getElementById('count').textContent === '2'")
    await ana.type("Is anybody in the kitchen?")
    await ana.key("Enter")
    await bo.until(says("Ana", "Is anybody in the kitchen?"))
    await bo.type("Yes, the coffee is ready ☕ — it’s still hot.")
    await bo.key("Enter")
    await ana.until(says("Bo", "Yes, the coffee is ready ☕ — it’s still hot."))
    # messages are shown as text, never as HTML
    for tab in (ana, bo):
        await tab.type(NASTY)
        await tab.key("Enter")
    for tab in (ana, bo):
        for name in ("Ana", "Bo"):
            await tab.until(says(name, NASTY))
        assert await tab.value("document.querySelectorAll('#log img, #log p b').length") == 0
        assert await tab.value("document.title") == "#kitchen"
    await ana.type("A longer one, so that it is seen how lines are broken: " + "word " * 30 + "x" * 120)
    await ana.key("Enter")
    await bo.until("document.querySelectorAll('.message').length === 5")
    await ana.look("light", 1100, 720, "chat-light")
    await bo.look("dark", 1100, 720, "chat-dark")
    await bo.look("dark", 390, 780, "chat-dark-phone")
    await ana.look("light", 360, 640, "chat-light-phone")
    # a later member sees earlier messages
    late = await open_tab(debugger, url)
    await come_in(late, "Ana")
    await late.until("document.querySelectorAll('.message').length === 5")
    assert await late.value("document.getElementById('state').textContent") == "You are Ana 2"
    await bo.until("document.getElementById('count').textContent === '3'")
    await late.call("Page.close")
    await bo.until("document.getElementById('count').textContent === '2'")
    server.send_signal(signal.SIGTERM)
    await bo.until("document.getElementById('state').textContent.includes('server shutting down')")
    for tab in (ana, bo, late):
        said = [text for text in tab.said if "ERR_CONNECTION_REFUSED" not in text]
        assert said == [], said


def run():
    server = subprocess.Popen([chat], stdout=subprocess.PIPE)
    port = int(server.stdout.readline().split()[-1])
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = subprocess.Popen([chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0",
                                    "--disable-dev-shm-usage", "--remote-allow-origins=*", "--user-data-dir=" + profile,
                                    "about:blank"],
                                   stderr=subprocess.PIPE, text=True)
        try:
            for line in browser.stderr:
                if line.startswith("DevTools listening on"):
                    break
            debugger = int(line.split(":")[-1].split("/")[0])
            asyncio.run(asyncio.wait_for(two_tabs(debugger, port, server), 120))
        finally:
            browser.terminate()
            browser.wait()
            server.terminate()
            status = server.wait(10)
    assert status == 0, status


print("1..1")
if not chromium or not websockets:
    print("ok 1 - two tabs talk # SKIP", "chromium" if websockets else "python3-websockets", "is not installed")
    sys.exit(0)
try:
    run()
    print("ok 1 - two tabs talk")
except Exception as error:
    print("not ok 1 - two tabs talk")
    print("#", type(error).__name__, error)
    sys.exit(1)
