#!/usr/bin/env python3
"""Tests the site of the documents: site_test.py ROOT MANUAL

It is made, and each page has a title, a heading and a language; each link leads to a page, and each anchor to a heading; each
document, each recipe and each manual page is in it; the search's index has each of their titles; and a folder that is no site is
not replaced.
"""
import html.parser
import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.parse


class Page(html.parser.HTMLParser):
    VOID = {"meta", "link", "img", "input", "br", "hr", "col", "wbr"}

    def __init__(self, place):
        super().__init__()
        self.links, self.ids, self.headings, self.open, self.faults, self.title, self.lang = [], set(), [], [], [], "", None
        self.regions, self.link, self.link_text = set(), None, ""
        with open(place, encoding="utf-8") as file:
            self.feed(file.read())
        if self.open:
            self.faults.append(f"{self.open} are not closed")

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if tag not in self.VOID:
            self.open.append(tag)
        if "id" in values:
            if values["id"] in self.ids:
                self.faults.append(f"the id {values['id']} is there twice")
            self.ids.add(values["id"])
        self.links += [values[name] for name in ("href", "src") if values.get(name)]
        if tag == "img" and not values.get("alt"):
            self.faults.append("a picture has no text")
        if values.get("role") == "region":
            if not values.get("aria-label") or values["aria-label"] in self.regions:
                self.faults.append(f"a region's name, {values.get('aria-label')}, is not its own")
            self.regions.add(values.get("aria-label"))
        if tag == "a":
            if self.link is not None:
                self.faults.append(f"a link, {self.link}, has another inside")
            self.link, self.link_text = values.get("href"), values.get("aria-label") or ""
        if tag == "img":
            self.link_text += values.get("alt") or ""
        if tag == "html":
            self.lang = values.get("lang")
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(tag)

    def handle_endtag(self, tag):
        if tag in self.VOID:
            return
        if tag == "a":
            if not self.link_text.strip():
                self.faults.append(f"a link, {self.link}, has no text")
            self.link = None
        while self.open and self.open[-1] != tag and self.open[-1] in ("p", "li", "dd", "dt", "td", "tr"):
            self.open.pop()  # (may stay open)
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}> ends another element")

    def handle_data(self, data):
        self.link_text += data
        if self.open and self.open[-1] == "title":
            self.title += data


def read_site(folder):
    pages, files = {}, set()
    for place, _, names in os.walk(folder):
        for name in names:
            path = os.path.relpath(os.path.join(place, name), folder)
            files.add(path)
            if name.endswith(".html"):
                pages[path] = Page(os.path.join(place, name))
    return pages, files


def faults_of(pages, files):
    """What is wrong with the pages, a line each."""
    for path, page in pages.items():
        yield from (f"{path}: {fault}" for fault in page.faults)
        if page.lang != "en" or "bide" not in page.title or page.headings.count("h1") != 1:
            yield f"{path}: language {page.lang}, title '{page.title}', headings {page.headings[:3]}"
        for link in page.links:
            address, _, anchor = link.partition("#")
            if re.match("[a-z]+:", address):
                continue
            target = os.path.normpath(os.path.join(os.path.dirname(path), urllib.parse.unquote(address))) if address else path
            if target not in files:
                yield f"{path}: {link} leads nowhere"
            elif anchor and target in pages and urllib.parse.unquote(anchor) not in pages[target].ids:
                yield f"{path}: {link} leads to no heading"


def missing_of(root, manual, files, titles):
    """What the site should have and has not."""
    for place, _, names in os.walk(os.path.join(root, "docs")):
        for name in names:
            path = os.path.relpath(os.path.join(place, name), root)
            if name.endswith(".md") and path[:-3] + ".html" not in files:
                yield path
            if name.endswith("-body.c") and path[:-len("-body.c")] + ".html" not in files:
                yield path
    for section in ("3", "7"):
        for name in os.listdir(os.path.join(manual, "man" + section)):
            if name[:-2] not in titles:
                yield name


def main():
    root, manual = sys.argv[1:]
    script = os.path.join(root, "scripts/site")
    python = sys.executable
    usage = subprocess.run([python, script], capture_output=True, text=True).stderr
    if "No module named" in usage:  # by none of the interpreters that the script tries
        print("1..0 # SKIP python3-markdown or python3-pygments is not installed")
        return
    if subprocess.run(["sh", "-c", "command -v mandoc"], stdout=subprocess.DEVNULL).returncode:
        print("1..0 # SKIP mandoc is not installed")
        return
    failed = False

    def report(number, name, wrong):
        nonlocal failed
        failed |= bool(wrong)
        print(f"{'not ' if wrong else ''}ok {number} - {name}")
        for line in wrong[:20]:
            print("#", line)

    print("1..4")
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "site")
        os.mkdir(out)
        for name in ("search-index.js", "left.html"):  # an older site, which is replaced
            with open(os.path.join(out, name), "w", encoding="utf-8") as file:
                file.write("")
        made = subprocess.run([python, script, root, manual, out], capture_output=True, text=True)
        wrong = [] if made.returncode == 0 else [made.stderr]
        report(1, "it is made, in place of an older one", wrong + ["left.html is left"] * os.path.exists(f"{out}/left.html"))
        pages, files = read_site(out)
        report(2, "pages are whole, and links lead somewhere", list(faults_of(pages, files)))
        with open(os.path.join(out, "search-index.js"), encoding="utf-8") as file:
            index = json.loads(file.read().removeprefix("const searchIndex = ").rstrip(";\n"))
        wrong = [f"{row} leads nowhere" for row in index if row[1].partition("#")[0] not in files]
        wrong += [f"{row} leads to no heading" for row in index
                  if "#" in row[1] and row[1].partition("#")[2] not in pages[row[1].partition("#")[0]].ids]
        wrong += [f"{path} is missing" for path in missing_of(root, manual, files, {row[0] for row in index})]
        report(3, "everything is there, and is found", wrong)
        other = os.path.join(folder, "other")
        os.mkdir(other)
        with open(os.path.join(other, "file"), "w", encoding="utf-8") as file:
            file.write("text")
        made = subprocess.run([python, script, root, manual, other], capture_output=True, text=True)
        wrong = [] if made.returncode == 1 and "is not a site" in made.stderr else [f"{made.returncode}: {made.stderr}"]
        report(4, "a folder that is no site stays", wrong + ([] if os.listdir(other) == ["file"] else ["it was replaced"]))
    sys.exit(failed)


if __name__ == "__main__":
    main()
