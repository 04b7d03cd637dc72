#!/usr/bin/env python3
"""Bodies of the multipart writer, from outside: http_multipart_writer_test.py PROGRAM HEADER TEST

    email   Python's email package reads the parts. The program with "--write" writes the type of a body, a newline, and the
            body.
    usage   the lines of the usage in HEADER are those of the program TEST, in their order, so that they compile and work
"""
import email
import email.policy
import subprocess
import sys

# (email drops a backslash, as the grammar of quoted strings has it)
wanted = [
    ("title", None, "text/plain", b"hello"),
    ("a%22b%0D%0Acd", "x %22y%22%0A.txt", "application/octet-stream", b"\r\n-"),
    ("größe", "", "text/plain", b""),
    ("", None, "image/png", b"\x89PNG\r\n\x1a\n"),
]

written = subprocess.run([sys.argv[1], "--write"], stdout=subprocess.PIPE, check=True).stdout
kind, body = written.split(b"\n", 1)
message = email.message_from_bytes(b"Content-Type: " + kind + b"\r\n\r\n" + body, policy=email.policy.HTTP)
found = []
for part in message.iter_parts():
    disposition = part["Content-Disposition"].params
    found.append((disposition.get("name"), disposition.get("filename"), part.get_content_type(), part.get_payload(decode=True)))
ok = message.get_content_type() == "multipart/form-data" and not message.defects and found == wanted
print("1..2")
print("ok 1 - email" if ok else f"not ok 1 - email\n# wanted {wanted}\n# found {found} {message.defects}")

usage = []
with open(sys.argv[2], encoding="utf-8") as header:
    for line in header:
        if line.startswith("#"):
            break
        if line.startswith(" *     ") and not line[7:].strip().startswith("..."):
            usage.append(line[7:].strip())
with open(sys.argv[3], encoding="utf-8") as test:
    lines = (line.strip() for line in test)
    missing = [line for line in usage if line not in lines]
whole = len(usage) > 10 and not missing
print("ok 2 - usage" if whole else f"not ok 2 - usage: {len(usage)} lines\n# missing {missing[:1]}")
sys.exit(not (ok and whole))
