#!/usr/bin/env python3
"""A floor of the library depends only on itself and on floors below it: floors_test.py ROOT ARCHIVE...

    placed      every source and header is on one floor, by the tables below
    includes    no file of src/ or include/ includes a file of another floor that is not below it
    members     every object of the archives was compiled from one known source
    linked      no object references a symbol that is defined on another floor that is not below it
    allowed     every exception in the tables below is still needed

Since every edge between floors goes down, floors form no circle.
"""
import collections
import os
import re
import subprocess
import sys

# From the lowest to the highest. Floors on one line do not depend on each other.
FLOORS = [
    ["base"],
    ["coroutine"],
    ["sync"],
    ["queue"],
    ["system"],
    ["schedule"],
    ["inspect"],
    ["io"],
    ["net"],
    ["tls", "websocket", "log"],
    ["http"],
    ["http2"],
    ["monitor", "simulation", "check"],
    ["all"],
]

# The floor of a source is that of its longest prefix in this table.
SOURCES = {
    "src/base/": "base",
    "src/coroutine/": "coroutine",
    "src/sync/": "sync",
    "src/queue/": "queue",
    "src/system/": "system",
    "src/schedule/": "schedule",
    "src/inspect/": "inspect",
    "src/io/": "io",
    "src/net/": "net",
    "src/tls/": "tls",
    "src/websocket/": "websocket",
    "src/log/": "log",
    "src/http/": "http",
    "src/http2/": "http2",
    "src/monitor/": "monitor",
    "src/simulation/": "simulation",
    "src/check/": "check",
}

# The headers of include/bide/, without ".h". A header of extend/ that is not listed is on the floor of the header with
# the same name in bide/.
HEADERS = {
    "base": "atomic compiler errors extend/fence platform sequence version detail/arguments detail/back_off detail/check_atomic "
            "detail/beside detail/element detail/join_deque detail/ring_position detail/sequence_names detail/sequence_names_end "
            "detail/shared_words detail/this_thread detail/tuning",
    "coroutine": "allocator async_generator context_value coroutine create deadline frame generator handle inspect interval "
                 "recursive_generator schedule scope sleep stop stop_callback sync_wait task then when with_stop "
                 "extend/branch extend/choice extend/coroutine_type extend/handshake extend/root extend/timer extend/wrapper "
                 "detail/awaiter_chain detail/body_cxx detail/body_variants detail/yield_budget",
    "sync": "adaptive_spin auto_event barging_mutex condition cyclic_barrier event latch multi_producer_sequencer mutex notify "
            "once rw_lock semaphore sequence16 sequence32 sequence64 sequence8 sequence_barrier sequence_group shared_task "
            "single_consumer_event single_producer_sequencer wait_group extend/event_count extend/waiter_list "
            "extend/waiter_queue detail/claim_turn detail/sequence_again",
    "queue": "broadcast channel counted_queue hazard linked_queue mpmc_ring node_pool oneshot rendezvous ring segment_queue "
             "select select_set spsc_channel spsc_ring unbounded_channel watch core",
    "system": "detail/system_types",
    "schedule": "blocking fork join parallel pollable run_loop spawn strand thread_pool token_bucket",
    "inspect": "dump stall_detector trace",
    "io": "acceptor address buffer_pool descriptor directory fd_passing file file_copy file_lock file_watch io_pool loop path process receiver run send_file signal socket "
          "splice terminal tree_watch extend/io",
    "net": "connection_pool names pool_server server stream",
    "tls": "tls",
    "log": "message_log",
    "websocket": "websocket websocket_deflate",
    "http": "http http_agent http_agent_tls http_client http_compression http_cookies http_event_reader http_events http_files http_form http_multipart http_multipart_writer http_log http_message http_router http_server http_url http_websocket extend/http",
    "http2": "http2 http2_client http2_websocket http_agent_http2",
    "monitor": "monitor",
    "simulation": "memory_io sim_loop",
    "check": "check check_pthread",
    "all": "async bide detail/async_macros detail/async_step detail/editor",
}

# Symbols that a lower floor references although a higher floor defines them: the reason for each.
ALLOWED_SYMBOLS = {
    "bide_platform": "the port's table: bide/platform.h declares it, each port defines it, the linker binds it",
}
# The same for includes.
ALLOWED_INCLUDES = {
    ("src/coroutine/short_lock.h", "include/bide/check_pthread.h"):
        "only if BIDE_CHECK: under the model checker the lock is one that the checker knows",
}

root = os.path.abspath(sys.argv[1])
archives = sys.argv[2:]
rank = {floor: number for number, floors in enumerate(FLOORS) for floor in floors}
failures = 0


def check(name, ok, *text):
    global failures
    check.count += 1
    failures += not ok
    print(f"{'' if ok else 'not '}ok {check.count} - {name}")
    for line in [] if ok else text[:100]:
        print("#", line)


check.count = 0


def floor_of_header(name):
    """The floor of include/bide/NAME.h, or None."""
    if name in headers:
        return headers[name]
    return headers.get(name[len("extend/"):]) if name.startswith("extend/") else None


def floor_of(path):
    """The floor of a file, by its path relative to the root, or None."""
    if path.startswith("include/bide/"):
        return floor_of_header(os.path.splitext(path[len("include/bide/"):])[0])
    found = max((prefix for prefix in SOURCES if path.startswith(prefix)), key=len, default=None)
    return SOURCES.get(found)


def files_below(*folders):
    for folder in folders:
        for path, _, names in os.walk(os.path.join(root, folder)):
            for name in names:
                if name.endswith((".c", ".h", ".inc")):
                    yield os.path.relpath(os.path.join(path, name), root)


def is_allowed(user, used):
    return user == used or rank[used] < rank[user]


# ---- Includes ----

headers = {name: floor for floor, names in HEADERS.items() for name in names.split()}
files = sorted(files_below("src", "include"))
check("placed: each name of the header table once", len(headers) == sum(len(names.split()) for names in HEADERS.values()))
missing = [name for name in headers
           if not any(f"include/bide/{name}.{ending}" in files for ending in ("h", "inc"))]
check("placed: each header of the table exists", not missing, *missing)
unplaced = [path for path in files if floor_of(path) is None]
check(f"placed: {len(files)} files", len(files) > 300 and not unplaced, *unplaced)

upwards, needed_includes, count = [], set(), 0
for path in files:
    with open(os.path.join(root, path), encoding="utf-8") as file:
        included = re.findall(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', file.read(), re.M)
    for name in included:
        target = os.path.normpath(os.path.join(os.path.dirname(path), name))
        if target not in files:
            target = "include/" + name
        if floor_of(path) is None or floor_of(target) is None:
            continue
        count += 1
        if not is_allowed(floor_of(path), floor_of(target)):
            if (path, target) in ALLOWED_INCLUDES:
                needed_includes.add((path, target))
            else:
                upwards.append(f"{path} ({floor_of(path)}) includes {target} ({floor_of(target)})")
check(f"includes: {count} of them", count > 1000 and not upwards, *upwards)

# ---- The linker's view ----

sources = {}
for path in files:
    if path.endswith(".c"):
        sources.setdefault(path.replace("/", "_") + ".o", []).append(path)


def floor_of_member(archive, member):
    """The floor of an object, or None. An archive beside the library, such as libbide-tls.a, is a floor of its own."""
    beside = re.match(r"libbide-(\w+)\.a$", os.path.basename(archive))
    if beside:
        return beside.group(1) if beside.group(1) in rank else None
    if "bide_llhttp" in member:
        return "http" # (these sources are copied into the build directory)
    paths = sources.get(member, [])
    return floor_of(paths[0]) if len(paths) == 1 else None


defined, undefined, floors, unknown = {}, collections.defaultdict(set), {}, []
for archive in archives:
    listed = subprocess.run(["nm", "-A", archive], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    for line in listed.stdout.splitlines():
        # "ARCHIVE:MEMBER:", or "ARCHIVE:PATH/MEMBER:" of a thin archive
        found = re.match(r".*\.a:(?:[^:]*/)?([^:/]+):\s*(?:[0-9a-fA-F]+\s+)?([A-Za-z])\s+(\S+)$", line)
        if not found:
            continue
        member, kind, symbol = found.groups()
        symbol = symbol.split("@")[0]
        name, member = member, f"{os.path.basename(archive)}:{member}"
        if member not in floors:
            floors[member] = floor_of_member(archive, name)
            if floors[member] is None:
                unknown.append(member)
        if kind in "TDBRGSVWC":
            defined[symbol] = member
        elif kind in "Uwv":
            undefined[member].add(symbol)
check(f"members: {len(floors)} objects", len(floors) > 100 and not unknown, *unknown)

upwards, needed_symbols = [], set()
for member in sorted(undefined):
    for symbol in sorted(undefined[member]):
        other = defined.get(symbol)
        user, used = floors.get(member), floors.get(other)
        if user is None or used is None or is_allowed(user, used):
            continue
        if symbol in ALLOWED_SYMBOLS:
            needed_symbols.add(symbol)
        else:
            upwards.append(f"{member} ({user}) references {symbol} of {other} ({used})")
check(f"linked: {sum(len(symbols) for symbols in undefined.values())} references", len(defined) > 1000 and not upwards,
      *upwards)

unneeded = sorted(set(ALLOWED_SYMBOLS) - needed_symbols) + sorted(map(str, set(ALLOWED_INCLUDES) - needed_includes))
check("allowed: each exception is needed", not unneeded, *unneeded)

print(f"1..{check.count}")
sys.exit(failures != 0)
