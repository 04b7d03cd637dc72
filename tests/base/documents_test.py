#!/usr/bin/env python3
"""The documents hang together: documents_test.py ROOT

    detects   what the other tests look for is found in a document that has it
    links     each relative link in a document, and its anchor, leads somewhere
    words     README.md and each page of docs are at most 900 words, without blocks of code between fences
    programs  each page with a program is named in a meson.build of the tests, so that a test compiles and runs it

In TAP.
"""
import os
import re
import subprocess
import sys
import tempfile

LIMIT = 900
# Longer pages, and why. A name that ends in a slash is a directory.
LONGER = {
    "docs/internals/": "reference: one page for the argument of each header",
    "docs/memory-orders.md": "reference: a table, made by the model checker",
    "docs/async-wg14.md": "a paper, which is read as one",
}
FENCE = re.compile(r"^ {0,3}(```+|~~~+)")
LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)|^\[[^\]]+\]:\s+(\S+)|\b(?:href|src)=\"([^\"]+)\"", re.M)
PROGRAM = re.compile(r"^(?:async )?int main\(", re.M)


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def split(text):
    """The lines outside of fenced blocks, and the blocks in C and C++."""
    outside, blocks, fence, block = [], [], None, None
    for line in text.splitlines():
        match = FENCE.match(line)
        if fence is not None:
            if match and match.group(1).startswith(fence) and not line.strip().strip(fence[0]):
                fence = block = None
            elif block is not None:
                block.append(line)
        elif match:
            fence = match.group(1)
            if line.strip().strip(fence[0]) in ("c", "cpp"):
                block = []
                blocks.append(block)
        else:
            outside.append(line)
    return outside, ["\n".join(block) for block in blocks]


def prose(text):
    """Without blocks of code, fenced or indented, and without code in a line."""
    kept, after_blank, in_list, in_code = [], True, False, False
    for line in split(text)[0]:
        if not line.strip():
            after_blank = True
        elif line.startswith("    ") and not in_list and (after_blank or in_code):
            in_code, after_blank = True, False
            continue
        else:
            in_list = bool(re.match(r"\s*([-*+]|\d+[.)]) ", line)) or (in_list and line.startswith(" "))
            in_code = after_blank = False
        kept.append(line)
    return re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "code", "\n".join(kept), flags=re.S)


def anchors(text):
    """As GitHub makes them of the headings."""
    found, counts = set(), {}
    for line in split(text)[0]:
        match = re.match(r" {0,3}#{1,6}\s+(.*?)\s*#*\s*$", line)
        if match:
            title = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", match.group(1)).replace("`", "").replace("*", "")
            name = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
            count = counts.get(name, 0)
            counts[name] = count + 1
            found.add(f"{name}-{count}" if count else name)
        found.update(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", line))
    return found


def dead_links(root, paths):
    wrong = []
    for path in paths:
        for target in (next(filter(None, groups)) for groups in LINK.findall(prose(read(root, path)))):
            if re.match(r"[a-z][a-z0-9+.-]*:", target):
                continue
            name, _, anchor = target.partition("#")
            file = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
            if not os.path.exists(os.path.join(root, file)):
                wrong.append(f"{path}: {target}: there is no {file}")
            elif anchor and file.endswith(".md") and anchor not in anchors(read(root, file)):
                wrong.append(f"{path}: {target}: {file} has no such heading")
    return wrong


def long_pages(root, paths):
    wrong = []
    for path in paths:
        if (path == "README.md" or path.startswith("docs/")) and not path.startswith(tuple(LONGER)):
            words = len(" ".join(split(read(root, path))[0]).split())
            if words > LIMIT:
                wrong.append(f"{path}: {words} words, of {LIMIT}")
    return wrong


def pages_without_test(root, paths, builds):
    named = "\n".join(read(root, build) for build in builds)
    wrong = []
    for path in paths:
        if path.startswith("docs/") and any(PROGRAM.search(block) for block in split(read(root, path))[1]):
            if not re.search(r"['/]%s(\.md)?'" % re.escape(os.path.basename(path)[:-len(".md")]), named):
                wrong.append(f"{path}: no meson.build of the tests names it")
    return wrong


def detects():
    with tempfile.TemporaryDirectory() as root:
        def write(path, text):
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(text)

        write("docs/a.md", "# A `b` page\n\n[good](b.md#two-words-1) [self](#a-b-page) [dead](c.md) [no\nheading](b.md#three)\n"
              "`[code](d.md)` <https://example.org/x.md>\n\n    array[i](e.md)\n\n```c\narray[i](f.md)\n# not a heading\n```\n")
        write("docs/b.md", "## Two words\n\n- an item\n\n    [dead](g.md)\n\n## Two words\n\n[dead](a.md#not-a-heading)\n")
        paths = ["docs/a.md", "docs/b.md"]
        found = [line.split(": ")[1] for line in dead_links(root, paths)]
        expected = ["c.md", "b.md#three", "g.md", "a.md#not-a-heading"]
        wrong = [] if found == expected else [f"dead links found: {found}, not {expected}"]
        block = "```c\nint main(void)\n{\n}\n```\n"
        write("docs/full.md", "word " * LIMIT + "\n" + block)
        write("docs/long.md", "word " * LIMIT + "\n" + block + "word\n")
        write("docs/internals/long.md", "word " * (LIMIT + 1))
        paths = ["docs/full.md", "docs/long.md", "docs/internals/long.md"]
        found = long_pages(root, paths)
        if found != [f"docs/long.md: {LIMIT + 1} words, of {LIMIT}"]:
            wrong.append(f"long pages found: {found}")
        write("meson.build", "documents = ['docs/full.md']\n")
        found = pages_without_test(root, paths, ["meson.build"])
        if found != ["docs/long.md: no meson.build of the tests names it"]:
            wrong.append(f"pages without a test found: {found}")
        return wrong


def listed(root, pattern):
    out = subprocess.run(["git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard", pattern], check=True,
                         stdout=subprocess.PIPE, text=True).stdout
    return sorted(path for path in out.splitlines() if os.path.isfile(os.path.join(root, path)))


def main():
    root = sys.argv[1]
    documents = listed(root, "*.md")
    results = [("detects", detects()), ("links", dead_links(root, documents)), ("words", long_pages(root, documents)),
               ("programs", pages_without_test(root, documents, listed(root, "tests/**meson.build")))]
    print(f"1..{len(results)}")
    for number, (name, wrong) in enumerate(results, 1):
        print(f"{'not ' if wrong else ''}ok {number} - {name}")
        for line in wrong:
            print("#", line)
    return any(wrong for _, wrong in results)


sys.exit(main())
