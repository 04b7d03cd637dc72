#!/usr/bin/env python3
"""Bodies of the multipart writer as Python's email package reads them: http_multipart_writer_test.py PROGRAM

The program with "--write" writes the type of a body, a newline, and the body.
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
print("1..1")
ok = message.get_content_type() == "multipart/form-data" and not message.defects and found == wanted
print("ok 1 - email reads the parts" if ok else f"not ok 1 - email reads the parts\n# wanted {wanted}\n# found {found} {message.defects}")
sys.exit(not ok)
