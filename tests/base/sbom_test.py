#!/usr/bin/env python3
"""The bill of materials (scripts/sbom) is SPDX 2.3, complete, and the same each time: sbom_test.py ROOT

In TAP. The structure is checked as the specification has it, by the fields that it requires.
"""
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

root = os.path.abspath(sys.argv[1])
count = 0
failed = False


def check(name, problems):
    global count, failed
    count += 1
    failed |= bool(problems)
    print(("not ok" if problems else "ok"), count, "-", name)
    for problem in problems:
        print("#", problem)


def run(folder, **environment):
    return subprocess.run([sys.executable, os.path.join(root, "scripts/sbom"), folder], capture_output=True, text=True, check=False,
                          env={**{k: v for k, v in os.environ.items() if k != "SOURCE_DATE_EPOCH"}, **environment})


REQUIRED = {
    "document": {"spdxVersion": r"SPDX-2\.3", "dataLicense": r"CC0-1\.0", "SPDXID": "SPDXRef-DOCUMENT", "name": r"bide-\d+\.\d+\.\d+",
                 "documentNamespace": r"https://[^#]+"},
    "package": {"SPDXID": r"SPDXRef-[A-Za-z0-9.-]+", "name": r".+", "downloadLocation": r".+", "licenseConcluded": r".+",
                "licenseDeclared": r".+", "copyrightText": r".+"},
    "file": {"SPDXID": r"SPDXRef-[A-Za-z0-9.-]+", "fileName": r"\./.+", "licenseConcluded": r".+", "copyrightText": r".+"},
}


def lacks(kind, entry):
    return [f"{kind} {entry.get('SPDXID')}: {field} is {entry.get(field)!r}" for field, pattern in REQUIRED[kind].items()
            if not re.fullmatch(pattern, str(entry.get(field, "")))]


def structure(document):
    wrong = lacks("document", document)
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", document["creationInfo"]["created"]):
        wrong.append(f"created {document['creationInfo']['created']}")
    wrong += [f"creator {creator}" for creator in document["creationInfo"]["creators"]
              if not re.match(r"(Person|Organization|Tool): .", creator)]
    for package in document["packages"]:
        wrong += lacks("package", package)
    for entry in document["files"]:
        wrong += lacks("file", entry)
    ids = ["SPDXRef-DOCUMENT"] + [entry["SPDXID"] for entry in document["packages"] + document["files"]]
    wrong += [f"{name} is twice" for name in set(ids) if ids.count(name) > 1] if len(set(ids)) != len(ids) else []
    known = set(ids)
    wrong += [f"nothing is {end}" for relation in document["relationships"]
              for end in (relation["spdxElementId"], relation["relatedSpdxElement"]) if end not in known]
    inside = {relation["relatedSpdxElement"] for relation in document["relationships"] if relation["relationshipType"] == "CONTAINS"}
    wrong += [f"{entry['fileName']} is in no package" for entry in document["files"] if entry["SPDXID"] not in inside]
    return wrong


def contents(document, folder):
    wrong = []
    sums = []
    for entry in document["files"]:
        with open(os.path.join(folder, entry["fileName"]), "rb") as file:
            content = file.read()
        has = {item["algorithm"]: item["checksumValue"] for item in entry["checksums"]}
        if has != {"SHA1": hashlib.sha1(content).hexdigest(), "SHA256": hashlib.sha256(content).hexdigest()}:
            wrong.append(f"{entry['fileName']} has other checksums")
        sums.append(has["SHA1"])
    code = document["packages"][0]["packageVerificationCode"]["packageVerificationCodeValue"]
    if code != hashlib.sha1("".join(sorted(sums)).encode()).hexdigest():
        wrong.append(f"the verification code is {code}")
    return wrong


def small(folder):
    """A tree that has what the script reads, and is no clone."""
    for name in ("meson.build", "LICENSE", "debian/changelog"):
        os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
        shutil.copy(os.path.join(root, name), os.path.join(folder, name))
    os.makedirs(os.path.join(folder, "build/meson-private"))
    with open(os.path.join(folder, "build/object"), "w", encoding="utf-8"):
        pass


made = run(root)
if made.returncode != 0:
    print("not ok 1 - it is made\n1..1\n# " + made.stderr)
    sys.exit(1)
whole = json.loads(made.stdout)
check("structure: that of SPDX 2.3", structure(whole))
check("contents: the checksums are those of the files", contents(whole, root))
with open(os.path.join(root, "meson.build"), encoding="utf-8") as source:
    build = source.read()
version = re.search(r"^  version: '([^']+)'", build, re.M).group(1)
versions = {package["name"]: package.get("versionInfo") for package in whole["packages"]}
check("packages: bide has the project's version, and each library that meson.build names is there",
      [] + ([] if versions.get("bide") == version else [f"bide {versions.get('bide')}"])
      + [f"no {name}" for name in ("liburing", "c-ares", "OpenSSL", "zlib", "brotli", "nghttp2", "llhttp") if name not in versions])

with tempfile.TemporaryDirectory() as scratch:
    folders = [os.path.join(scratch, name) for name in ("one", "another")]
    for folder in folders:
        os.mkdir(folder)
        small(folder)
    one, another = (run(folder) for folder in folders)
    check("two folders with the same files give the same bytes",
          [] if one.returncode == 0 and one.stdout == another.stdout else [one.stderr, another.stderr])
    names = [entry["fileName"] for entry in json.loads(one.stdout)["files"]]
    check("of an archive all files count, but those of a build", [] if names == ["./LICENSE", "./debian/changelog", "./meson.build"] else names)
    dated = json.loads(run(folders[0], SOURCE_DATE_EPOCH="86400").stdout)["creationInfo"]["created"]
    check("SOURCE_DATE_EPOCH is the date", [] if dated == "1970-01-02T00:00:00Z" else [dated])

    with open(os.path.join(folders[1], "LICENSE"), "a", encoding="utf-8") as file:
        file.write("\n")
    changed = json.loads(run(folders[1]).stdout)
    check("another file gives another name of the document",
          [] if changed["documentNamespace"] != json.loads(one.stdout)["documentNamespace"] else [changed["documentNamespace"]])
    with open(os.path.join(folders[1], "meson.build"), "a", encoding="utf-8") as file:
        file.write("other = dependency('libother')\n")
    refused = run(folders[1])
    check("a library without a licence is refused",
          [] if refused.returncode == 1 and "libother is not in LIBRARIES" in refused.stderr else [refused.stderr or "it is made"])
    os.remove(os.path.join(folders[0], "debian/changelog"))
    refused = run(folders[0])
    check("without a date it is refused",
          [] if refused.returncode == 1 and "debian/changelog is missing" in refused.stderr else [refused.stderr or "it is made"])

print(f"1..{count}")
sys.exit(failed)
