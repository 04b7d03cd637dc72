#!/usr/bin/python3
"""Loads a page with 50 assets over TLS, and a directory listing, in headless Chromium: browser_test.py HTTPD. Prints TAP."""
import html
import os
import re
import shutil
import subprocess
import sys
import tempfile

from harness import Httpd, check, missing

IMAGES, SCRIPTS = 25, 25
LISTED = ["sub/", "a&b.txt", "file 9.txt", "file 10.txt"]
IMAGE = """<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="10"><rect width="{0}" height="10"/></svg>"""
PAGE = """<!DOCTYPE html><meta charset="utf-8"><title>Assets</title><body><script>window.ran = []</script>
{}
<script>
addEventListener('load', () => {{
    const images = [...document.images].filter((image, i) => image.complete && image.naturalWidth === i + 1).length;
    document.body.dataset.found = `images ${{images}} scripts ${{new Set(window.ran).size}}`;
}});
</script>"""


def run():
    files = {f"a/{i}.svg": IMAGE.format(i + 1).encode() for i in range(IMAGES)}
    files.update({f"a/{i}.js": f"window.ran.push({i})".encode() for i in range(SCRIPTS)})
    tags = [f'<img src="a/{i}.svg">' for i in range(IMAGES)] + [f'<script src="a/{i}.js"></script>' for i in range(SCRIPTS)]
    files["index.html"] = PAGE.format("\n".join(tags)).encode()
    files.update({"list/" + (name + "x" if name.endswith("/") else name): b"" for name in LISTED})
    with Httpd(files, ["--log", "-"], tls=True) as httpd, tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        dom = open_page(profile, httpd.url + "/")
        check(f'data-found="images {IMAGES} scripts {SCRIPTS}"' in dom, dom[-2000:])
        dom = open_page(profile, httpd.url + "/list/")
        found = [html.unescape(text) for text in re.findall(r"<li><a [^>]*>(.*?)</a></li>", dom)]
        check(found == ["..", *LISTED], found)
        out, _ = httpd.stop()
        got = {found.group(1) for line in httpd.out.seen if (found := re.search(r'"GET /(a/\S+) HTTP/\S+" 200 ', line))}
        check(len(got) == IMAGES + SCRIPTS, "of the assets were asked for", len(got))


def open_page(profile, url):
    """The state of the page after loading."""
    return subprocess.run(
        [chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
         "--ignore-certificate-errors", "--user-data-dir=" + profile, "--dump-dom", url],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=True).stdout


print("1..1")
chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
absent = "chromium is not installed" if not chromium else missing("openssl")
if absent:
    print("ok 1 - a page with 50 assets # SKIP", absent)
    sys.exit(0)
Httpd.program = os.path.abspath(sys.argv[1])
with tempfile.TemporaryDirectory(prefix="httpd-test-") as Httpd.certificates:
    try:
        run()
        print("ok 1 - a page with 50 assets")
    except Exception as error:
        print("not ok 1 - a page with 50 assets")
        print("#", type(error).__name__, error)
        sys.exit(1)
