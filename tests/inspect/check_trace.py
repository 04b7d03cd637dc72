"""Reads the trace that a program writes: it is JSON; on each thread, and on each line of a task or an operation, the
last event that started ends first; no event ends before it starts."""

import json
import subprocess
import sys

written = subprocess.run([sys.argv[1], "write"], check=True, capture_output=True, text=True).stdout
trace = json.loads(written)
events = trace["traceEvents"]
assert trace["otherData"]["lost"] == 0
assert any(e["ph"] == "M" and e["name"] == "process_name" for e in events)

lines = {}
for event in events:
    phase = event["ph"]
    if phase in "BE":
        key = ("thread", event["tid"])
    elif phase in "be":
        key = (event["cat"], event["id"])
    else:
        continue
    lines.setdefault(key, []).append(event)

for key, line in lines.items():
    open_ones = []
    line.sort(key=lambda e: e["ts"])  # stable, as a viewer's
    for event in line:
        if event["ph"] in "Bb":
            open_ones.append(event)
            continue
        assert open_ones, (key, event)
        begun = open_ones.pop()
        assert begun["ts"] <= event["ts"], (begun, event)
        assert event["ph"] == "E" or begun["name"] == event["name"], (begun, event)
    left = [e for e in open_ones if e["name"] != "sleep"]
    assert not left, (key, left)

names = {e.get("name") for e in events}
for name in ("fib_body", "waiter_body", "reader_body", "bide_read", "wait: bide_event_wait"):
    assert name in names, name
assert len({e["tid"] for e in events if e["ph"] == "B"}) >= 2
print("1..1\nok 1 - a trace is what viewers read")
