#!/usr/bin/env python3
"""The recipes compile without warnings and print what is beside them: recipes_test.py ROOT BIDEC [MODULE=FLAGS...] COMPILER...

    pairs       each recipe is there in both ways, with its output, and has at most 40 lines
    index       README.md has a row for each, and no other
    NAME        the program compiles, succeeds and prints NAME.txt

A program is compiled by the command in its first comment, or by that of README.md. In it pkg-config gives the FLAGS of each
MODULE, which are of the libraries that are built; other modules are the system's. If one is missing, the recipe is skipped.
"""
import concurrent.futures
import http.server
import os
import re
import shlex
import shutil
import socketserver
import ssl
import subprocess
import sys
import tempfile
import threading

root, bidec = sys.argv[1:3]
modules = dict(argument.split("=", 1) for argument in sys.argv[3:] if argument.startswith("bide"))
compiler = sys.argv[3 + len(modules):]
folder = os.path.join(root, "docs", "recipes")
failures = 0


def check(name, ok, *text, skip=""):
    global failures
    check.count += 1
    failures += not ok
    print(f"{'' if ok else 'not '}ok {check.count} - {name}{' # SKIP ' + skip if skip else ''}", flush=True)
    for line in [] if ok else text[:30]:
        print("#", line)


check.count = 0


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def make_tools(bin):
    """Makes the commands that a recipe's command calls: those that are built, with the flags of the tests."""
    def tool(name, text):
        with open(os.path.join(bin, name), "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + text)
        os.chmod(os.path.join(bin, name), 0o755)

    own = shlex.join([*compiler, "-O0", "-Wall", "-Wextra", "-Werror"])
    tool("cc", f'''case " $* " in *" -std=c11 "*) set -- -Wpedantic "$@" ;; esac
PATH={shlex.quote(os.environ["PATH"])} exec {own} "$@"
''') # (the compiler may be a wrapper that looks for `cc` in turn)
    tool("bidec", f'exec {shlex.quote(bidec)} "$@"\n')
    # (--cflags gives the part of FLAGS that begins with -I or -D, --libs the others)
    cases = ""
    for module, flags in modules.items():
        words = flags.split()
        parts = [" ".join(word for word in words if word.startswith(("-I", "-D")) == wanted) for wanted in (True, False)]
        cases += f'    {module}) cflags="$cflags {parts[0]}" libs="$libs {parts[1]}" ;;\n'
    real = shutil.which("pkg-config") or "false"
    tool("pkg-config", f"""for word; do
    case $word in
{cases}    bide*) exit 1 ;;
    --*) options="$options $word" ;;
    *) others="$others $word" ;;
    esac
done
case $options in *--cflags*) echo $cflags ;; esac
case $options in *--libs*) echo $libs ;; esac
[ -z "$others" ] || exec {real} $options $others
""")


def command_of(name, way):
    """The shell's command that compiles a recipe, and the modules that it needs."""
    first = re.match(r"/\* ((?:bidec )?cc .*?) \*/", read(os.path.join(folder, f"{name}-{way}.c")), re.S)
    if first is None:
        first = re.search(r"^    (%scc .*)$" % ("bidec " if way == "async" else ""),
                          read(os.path.join(folder, "README.md")), re.M)
    command = first.group(1).replace(f"lock-{way}.c", f"{name}-{way}.c")
    needed = re.findall(r"\$\(pkg-config (?:--\w+ )+([^)]*)\)", command)
    return command, sorted({module for modules in needed for module in modules.split()})


class Hello(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "6")
        self.end_headers()
        self.wfile.write(b"hello\n")

    def log_message(self, *_):
        pass


class Uploads(Hello):
    """Takes a file that is the program's own."""
    expected = b""

    def do_PUT(self):
        data = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(201 if self.path == "/upload" and data == self.expected else 400)
        self.send_header("Content-Length", "0")
        self.end_headers()


def upload_server(program):
    """Starts a server for uploads of a program: (it, the arguments, the environment)."""
    with open(program, "rb") as file:
        handler = type("UploadsOfOne", (Uploads,), {"expected": file.read()})
    server = socketserver.TCPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, [f"http://127.0.0.1:{server.server_address[1]}/upload"], {}


def https_server(scratch):
    """Starts a server of its own authority: (it, the arguments and the environment of a client)."""
    key, proof = os.path.join(scratch, "key.pem"), os.path.join(scratch, "proof.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key,
                    "-out", proof, "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"],
                   check=True, stderr=subprocess.DEVNULL)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(proof, key)
    server = socketserver.TCPServer(("127.0.0.1", 0), Hello)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, [f"https://127.0.0.1:{server.server_address[1]}/"], {"SSL_CERT_FILE": proof}


def run(name, way, scratch):
    """Returns whether it prints its text, what there is to say if not, and why it was skipped."""
    command, needed = command_of(name, way)
    tools = {**os.environ, "PATH": os.path.join(scratch, "bin") + ":" + os.environ["PATH"]}
    for module in needed:
        if subprocess.run(["pkg-config", "--exists", module], env=tools, stderr=subprocess.DEVNULL).returncode != 0:
            return True, [], f"{module} is missing"
    place = os.path.join(scratch, f"{name}-{way}")
    os.mkdir(place)
    shutil.copy(os.path.join(folder, f"{name}-{way}.c"), place)
    built = subprocess.run(["sh", "-c", command], cwd=place, env=tools, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           text=True)
    if built.returncode != 0:
        return False, [command, *built.stdout.splitlines()], ""
    program = os.path.join(place, re.search(r"-o (\S+)$", command).group(1))
    server, arguments, environment = None, [], {}
    if name == "https-get":
        if shutil.which("openssl") is None:
            return True, [], "openssl is missing"
        server, arguments, environment = https_server(place)
    elif name == "upload":
        server, arguments, environment = upload_server(program)
    kept = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    done = subprocess.run([program, *arguments], env={**kept, **environment}, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=120)
    if server is not None:
        server.shutdown()
        server.server_close()
    expected = read(os.path.join(folder, name + ".txt"))
    return done.returncode == 0 and done.stdout == expected, [f"status {done.returncode}", *done.stdout.splitlines(),
                                                              *done.stderr.splitlines()], ""


names = sorted({re.sub(r"-(body|async)\.c$|\.txt$", "", name) for name in os.listdir(folder) if name != "README.md"})
faults = [f"{name}{end} is missing" for name in names for end in ("-body.c", "-async.c", ".txt")
          if not os.path.isfile(os.path.join(folder, name + end))]
faults += [f"{name} has more than 40 lines" for name in os.listdir(folder)
           if name.endswith(".c") and len(read(os.path.join(folder, name)).splitlines()) > 40]
check(f"pairs: {len(names)} recipes", len(names) > 25 and not faults, *faults)
rows = re.findall(r"^\| .* \| \[(\S+)-body\.c\]\(\1-body\.c\) \| \[\1-async\.c\]\(\1-async\.c\) \| \[\1\.txt\]\(\1\.txt\) \|$",
                  read(os.path.join(folder, "README.md")), re.M)
check("index", sorted(rows) == names, *sorted(set(rows) ^ set(names)))
if failures == 0:
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        os.mkdir(os.path.join(scratch, "bin"))
        make_tools(os.path.join(scratch, "bin"))
        runs = [(name, way, pool.submit(run, name, way, scratch)) for name in names for way in ("body", "async")]
        for name, way, result in runs:
            ok, text, skip = result.result()
            check(f"{name}: {way}", ok, *text, skip=skip)
print(f"1..{check.count}")
sys.exit(failures != 0)
