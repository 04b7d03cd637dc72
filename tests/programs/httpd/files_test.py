#!/usr/bin/env python3
"""Tests files, directories, limits, the log and the shutdown of httpd, without TLS: files_test.py PROGRAM [TEST...]."""

import gzip
import html.parser
import os
import signal
import subprocess
import sys
import urllib.parse

from harness import (PATIENCE, Httpd, Response, ask, check, compresses, equal, held, missing, read_all, read_exactly, run,
                     speaks_http2, tests_of, wait_until_closed)

TEXT = b"0123456789"
LARGE = os.urandom(1 << 20) * 3
HUGE = 1 << 30  # (a sparse file)
STATUS = ("-o", "/dev/null", "-w", "%{http_code}")


# ---- Files ----


def curl_gets_files_as_they_are():
    with Httpd({"a.txt": TEXT, "large": LARGE, "empty": b"", "b/index.html": b"<p>b</p>"}) as httpd:
        equal(httpd.curl("URL/a.txt"), TEXT)
        equal(httpd.curl("URL/large"), LARGE)
        equal(httpd.curl("URL/empty"), b"")
        equal(httpd.curl("URL/b/"), b"<p>b</p>")
        equal(httpd.curl("-0", "URL/a.txt"), TEXT)
        equal(httpd.curl("-I", *STATUS[:2], "-w", "%{http_code} %header{content-length} %{content_type}", "URL/a.txt"),
              b"200 10 text/plain; charset=utf-8")
        equal(httpd.curl(*STATUS, "-w", "%{http_code} %header{location}", "URL/b?q"), b"301 /b/?q")
        # (one connection for all of them)
        equal(httpd.curl("-w", "%{num_connects}", "URL/a.txt", "URL/empty", "URL/large"), TEXT + b"10" + LARGE + b"0")


def what_is_not_there_and_what_must_not_be_is_not_found():
    with Httpd({"a.txt": TEXT, ".hidden": TEXT, "b/c": TEXT}) as httpd:
        with open(os.path.join(httpd.directory, "secret"), "wb") as file:
            file.write(b"secret")
        os.symlink("../secret", httpd.path("link"))
        os.symlink("a.txt", httpd.path("inside"))
        for target in ("/nothing", "/../secret", "/b/../../secret", "/%2e%2e/secret", "/b/..%2f..%2fsecret", "//../secret",
                       "/.hidden", "/link", "/inside", "/a.txt/", "/a.txt/x"):
            equal(httpd.curl("--path-as-is", *STATUS, "URL" + target), b"404", target)
        equal(httpd.curl("--path-as-is", *STATUS, "URL/a%00.txt"), b"400")
        equal(httpd.curl("--path-as-is", *STATUS, "URL/a%zz"), b"400")
        equal(httpd.curl("-X", "DELETE", *STATUS, "-w", "%{http_code} %header{allow}", "URL/a.txt"), b"405 GET, HEAD")


def options_say_what_is_there():
    with Httpd({".hidden": TEXT, "b/c": TEXT}, ["--hidden", "--no-listings", "--follow-links", "--cache-control", "max-age=5"]
               ) as httpd:
        os.symlink("b/c", httpd.path("link"))
        os.symlink("/etc/passwd", httpd.path("outside"))
        equal(httpd.curl("URL/.hidden"), TEXT)
        equal(httpd.curl("-w", " %header{cache-control}", "URL/link"), TEXT + b" max-age=5")
        equal(httpd.curl(*STATUS, "URL/outside"), b"404")
        equal(httpd.curl(*STATUS, "URL/b/"), b"404")


def ranges():
    with Httpd({"a.txt": TEXT, "large": LARGE}) as httpd:
        equal(httpd.curl("-r", "2-4", "-w", " %{http_code} %header{content-range}", "URL/a.txt"),
              b"234 206 bytes 2-4/10")
        equal(httpd.curl("-r", "-3", "URL/a.txt"), b"789")
        equal(httpd.curl("-r", "1000000-1999999", "URL/large"), LARGE[1000000:2000000])
        equal(httpd.curl("-r", "10-", *STATUS, "-w", "%{http_code} %header{content-range}", "URL/a.txt"),
              b"416 bytes */10")
        parts = httpd.curl("-r", "0-1,8-9", "URL/a.txt")
        check(parts.count(b"Content-Range: bytes ") == 2 and b"\r\n\r\n01\r\n" in parts and b"\r\n\r\n89\r\n" in parts, parts)
        tag = httpd.curl(*STATUS[:2], "-w", "%header{etag}", "URL/a.txt").decode()
        equal(httpd.curl("-r", "2-4", "-H", f"If-Range: {tag}", "URL/a.txt"), b"234")
        equal(httpd.curl("-r", "2-4", "-H", 'If-Range: "other"', "URL/a.txt"), TEXT)


def what_the_client_has_is_not_sent_again():
    with Httpd({"a.txt": TEXT}) as httpd:
        tag_path = os.path.join(httpd.directory, "tag")
        equal(httpd.curl("--etag-save", tag_path, "URL/a.txt"), TEXT)
        equal(httpd.curl("--etag-compare", tag_path, "-w", "%{http_code}", "URL/a.txt"), b"304")
        equal(httpd.curl("-z", httpd.path("a.txt"), "-w", "%{http_code}", "URL/a.txt"), b"304")
        equal(httpd.curl("-z", "Thu, 01 Jan 1970 00:00:01 GMT", *STATUS, "URL/a.txt"), b"200")
        os.utime(httpd.path("a.txt"), (1, 1))
        equal(httpd.curl("-z", "Thu, 01 Jan 1970 00:00:00 GMT", "URL/a.txt"), TEXT)
        equal(httpd.curl("--etag-compare", tag_path, "URL/a.txt"), TEXT)


def compressed_files_are_for_those_who_take_them():
    with Httpd({"a.js": TEXT, "a.js.gz": gzip.compress(b"compressed"), "b.js": TEXT}) as httpd:
        equal(httpd.curl("URL/a.js"), TEXT)
        equal(httpd.curl("--compressed", "-w", " %header{content-encoding} %header{vary} %{content_type}", "URL/a.js"),
              b"compressed gzip Accept-Encoding text/javascript; charset=utf-8")
        equal(httpd.curl("--compressed", "URL/b.js"), TEXT)
        os.utime(httpd.path("a.js.gz"), (1, 1))  # it is older
        equal(httpd.curl("--compressed", "URL/a.js"), TEXT)


def texts_are_compressed_if_an_option_says_so():
    if not compresses():
        return "httpd was built without zlib"
    text = b"".join(b"%d lines of a text\n" % i for i in range(100000))  # (more than any buffer holds)
    files = {"a.txt": text, "a.png": text, "small.txt": TEXT, "b.js": text, "b.js.gz": gzip.compress(b"compressed"), "d/e": TEXT}
    with Httpd(files, ["--compress"]) as httpd:
        for version in ["--http1.1"] + (["--http2-prior-knowledge"] if speaks_http2() else []):
            equal(httpd.curl(version, "URL/a.txt"), text)
            equal(httpd.curl(version, "--compressed", "URL/a.txt"), text)
            size, encoding, *vary = httpd.curl(version, "-H", "Accept-Encoding: gzip", "-o", "/dev/null", "-w",
                                               "%{size_download} %header{content-encoding} %header{vary}", "URL/a.txt").split()
            check(int(size) < len(text) // 3 and encoding == b"gzip" and vary == [b"Accept-Encoding"], size, encoding, vary)
            equal(httpd.curl(version, "--compressed", "-r", "2-4", "-w", "%{http_code}", "URL/a.txt"), b"lin206")
            equal(httpd.curl(version, "--compressed", "-o", "/dev/null", "-w", "%header{content-encoding}", "URL/a.png"), b"")
            equal(httpd.curl(version, "--compressed", "-w", "%header{content-encoding}", "URL/small.txt"), TEXT)
            equal(httpd.curl(version, "--compressed", "-w", " %header{content-encoding}", "URL/b.js"), b"compressed gzip")
            equal(httpd.curl(version, "--compressed", "-I", "-o", "/dev/null", "-w",
                             "%header{content-encoding} %{http_code}", "URL/a.txt"), b"gzip 200")
            check(b"Index of" in httpd.curl(version, "--compressed", "URL/d/"))
        tag_path = os.path.join(httpd.directory, "tag")
        equal(httpd.curl("--compressed", "--etag-save", tag_path, "URL/a.txt"), text)
        with open(tag_path, encoding="ascii") as file:
            check(file.read().startswith('W/"'))
        equal(httpd.curl("--compressed", "--etag-compare", tag_path, "-w", "%{http_code}", "URL/a.txt"), b"304")
        with httpd.client() as client:  # it takes the head, and leaves
            client.sendall(b"GET /a.txt HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n")
            read_exactly(client, 100)
        httpd.idle()


class Links(html.parser.HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.links, self.texts, self.inside, self.page_tags = [], [], False, ["html", "title", "style", "h1", "ul", "script"]
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        check(tag in ("meta", "li", "a") or tag in self.page_tags, "a name has become a tag:", tag)
        if tag in self.page_tags:
            self.page_tags.remove(tag)  # (there is one)
        if tag == "a":
            self.links.append(dict(attrs)["href"])
            self.texts.append("")
            self.inside = True

    def handle_endtag(self, tag):
        self.inside = self.inside and tag != "a"

    def handle_data(self, data):
        if self.inside:
            self.texts[-1] += data


def listings_lead_to_every_name():
    names = ["plain.txt", "<b>&amp;.txt", "a b#c?d%41.txt", '"quoted\'.txt', "javascript:alert(1)", "\u00e4\u00f6\u4e2d.txt", "n" * 200]
    with Httpd({"directory/" + name: name.encode() for name in names}) as httpd:
        os.mkdir(httpd.path("directory/sub"))
        httpd.write("directory/.hidden", TEXT)
        text = httpd.curl("URL/directory/").decode()
        check("<h1>Index of /directory/</h1>" in text, text)
        check(b'href="../"' not in httpd.curl("URL/"), "there is nothing above")
        page = Links(text)
        found = {}
        for link in page.links:
            target = urllib.parse.urljoin(httpd.url + "/directory/", link)
            check(target.startswith(httpd.url + "/"), link)
            found[target] = None
        for name in names:
            target = f"{httpd.url}/directory/{urllib.parse.quote(name, safe='')}"
            check(target in found, name, "is missing:", page.links)
            equal(httpd.curl(target), name.encode())
        check("sub/" in page.texts and ".." in page.texts and not any("hidden" in text for text in page.texts), page.texts)
        for name in names[:-1]:
            check(name in page.texts, name, page.texts)


def a_request_by_hand_is_answered():
    absent = missing("nc")
    if absent:
        return absent
    with Httpd({"a": TEXT}) as httpd:
        done = subprocess.run(["nc", "-N", "localhost", str(httpd.port)], input=b"GET /a HTTP/1.0\r\n\r\n",
                              capture_output=True, timeout=PATIENCE, check=True)
        check(done.stdout.startswith(b"HTTP/1.1 200 OK\r\n") and done.stdout.endswith(b"\r\n\r\n" + TEXT), done.stdout)
    return None


def a_file_that_shrinks_ends_the_connection():
    with Httpd({"large": LARGE * 8}) as httpd, httpd.client() as client:
        ask(client, "/large")
        response = Response(client, has_body=False)
        equal(response.length, len(LARGE) * 8)
        read_exactly(client, 100000)
        os.truncate(httpd.path("large"), 4096)
        check(len(read_all(client)) < response.length - 100000, "it has sent more than there is")
        # the server is available to others
        equal(httpd.curl("-r", "0-9", "URL/large"), LARGE[:10])
        equal(httpd.idle()["requests"], 2)


# ---- Limits ----


def slow_heads_are_rejected():
    with Httpd({"a": TEXT}, ["--header-timeout", "0.2"]) as httpd:
        with held(httpd.process):
            client, silent = httpd.client(), httpd.client()
            client.sendall(b"GET /a HTTP/1.1\r\nHost: loc")
        with client, silent:
            equal(Response(client).status, 408)
            equal(read_all(client), b"")
            equal(read_all(silent), b"")
            equal(httpd.statistics()["timed-out"], 2)


def slow_readers_are_cut_off():
    with Httpd({"huge": b""}, ["--body-timeout", "0.2"]) as httpd, httpd.client() as client:
        os.truncate(httpd.path("huge"), HUGE)
        ask(client, "/huge")
        Response(client, has_body=False)
        httpd.idle()
        check(len(read_all_or_reset(client)) < HUGE)


def read_all_or_reset(client):
    data = bytearray()
    try:
        while piece := client.recv(1 << 18):
            data += piece
    except ConnectionResetError:
        pass
    return data


def idle_connections_end():
    with Httpd({"a": TEXT}, ["--idle-timeout", "0.1"]) as httpd, httpd.client() as client:
        ask(client, "/a")
        equal(Response(client).body, TEXT)
        equal(read_all(client), b"")


def more_connections_wait():
    with Httpd({"a": TEXT}, ["--connections", "4"]) as httpd:
        clients = [httpd.client() for _ in range(6)]
        for client in clients:
            ask(client, "/a")
        # above three quarters of the limit, connections are closed after their response, so the others are admitted
        for client in clients:
            equal(Response(client).body, TEXT)
        for client in clients:
            client.close()
        statistics = httpd.idle()
        equal((statistics["accepted"], statistics["requests"], statistics["errors"]), (6, 6, 0))


def descriptors_bound_the_connections():
    with Httpd({"a": TEXT}, ["--connections", "1000"], prefix=["prlimit", "--nofile=64"]) as httpd:
        most = int(httpd.err.expect(r"only (\d+) connections").group(1))
        check(4 <= most <= 32, most)
        clients = [httpd.client() for _ in range(60)]
        while httpd.statistics()["live"] != most:
            pass
        statistics = httpd.statistics()
        equal((statistics["accepted"], statistics["pauses"], statistics["errors"]), (most, 0, 0))
        for client in clients:
            client.close()
        httpd.idle()
        equal(httpd.curl("URL/a"), TEXT)


# ---- The log, reload, shutdown ----


def requests_are_logged():
    with Httpd({"a.txt": TEXT}, ["--log", "-"]) as httpd:
        httpd.curl("-A", 'agent "1"', "-e", "http://from/", "URL/a.txt")
        httpd.out.expect(r'^127\.0\.0\.1 - - \[\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d \+0000\] "GET /a.txt HTTP/1.1" 200 10 '
                         r'"http://from/" "agent \\x221\\x22"$')
    with Httpd({"a.txt": TEXT}, ["--log", "-", "--log-format", "common"]) as httpd:
        httpd.curl("-I", "URL/a.txt")
        httpd.out.expect(r'"HEAD /a.txt HTTP/1.1" 200 0$')


def the_log_is_opened_anew():
    directory = Httpd.certificates
    path = os.path.join(directory, "access.log")
    with Httpd({"a": TEXT}, ["--log", path]) as httpd, httpd.client() as client:
        ask(client, "/a")
        equal(Response(client).body, TEXT)
        httpd.reload()  # (threads for files may have been started by that, with a descriptor)
        descriptors = httpd.descriptors()
        os.rename(path, path + ".1")
        httpd.reload()
        check(os.path.exists(path), "it was not opened anew")
        equal(httpd.descriptors(), descriptors, "the old log is open, descriptors:")
        ask(client, "/a?2")
        equal(Response(client).body, TEXT)
        client.close()
        httpd.stop()
    lines = []
    for name in (path + ".1", path):
        with open(name, encoding="ascii") as file:
            lines += file.read().splitlines()
    # the first line is in either file, the second in the new one, and none is lost
    check([line.split('"')[1] for line in lines] == ["GET /a HTTP/1.1", "GET /a?2 HTTP/1.1"], lines)


def a_log_that_cannot_be_opened_stays_as_it_was():
    directory = os.path.join(Httpd.certificates, "logs")
    os.mkdir(directory)
    path = os.path.join(directory, "access.log")
    with Httpd({"a": TEXT}, ["--log", path]) as httpd:
        os.rename(directory, directory + ".1")
        httpd.reload()
        httpd.err.expect("^httpd: .*access.log: No such file")
        equal(httpd.curl("URL/a"), TEXT)
        httpd.stop()
    with open(os.path.join(directory + ".1", "access.log"), encoding="ascii") as file:
        check("GET /a " in file.read())


def a_download_is_finished_when_it_is_stopped():
    with Httpd({"large": LARGE * 8}) as httpd, httpd.client() as client, httpd.client() as idle:
        ask(client, "/large")
        response = Response(client, has_body=False)
        read_exactly(client, 100000)
        ask(idle, "/nothing")
        equal(Response(idle).status, 404)
        httpd.signal(signal.SIGTERM)
        wait_until_closed(httpd.port)
        equal(read_all(idle), b"", "an idle connection ends at once,")
        check(httpd.process.poll() is None, "it has not waited")
        read_exactly(client, response.length - 100000)
        equal(read_all(client), b"", "the connection ends behind the response,")
        equal(httpd.wait(), 0)


def a_download_is_cut_short_when_the_time_is_over():
    for options, again in ((["--grace", "0.1"], False), ([], True)):
        with Httpd({"huge": b""}, options) as httpd, httpd.client() as client:
            os.truncate(httpd.path("huge"), HUGE)
            ask(client, "/huge")
            read_exactly(client, 1000)
            httpd.signal(signal.SIGTERM)
            if again:
                wait_until_closed(httpd.port)
                httpd.signal(signal.SIGTERM)
            equal(httpd.wait(), 0)
            check(len(read_all_or_reset(client)) < HUGE)


def threads_share_an_address():
    with Httpd({"a": TEXT}, ["--threads", "3", "--log", "-"]) as httpd:
        for _ in range(30):
            equal(httpd.curl("URL/a"), TEXT)
        httpd.signal(signal.SIGHUP)
        seen = {httpd.out.expect(r"^reloaded worker=(\d)").group(1) for _ in range(3)}
        equal(seen, {"0", "1", "2"})
        out, _ = httpd.stop()
        equal(sum("GET /a " in line for line in httpd.out.seen), 30, "lines in the log,")


# ---- The command line ----


def misuse_is_reported():
    def fails(status, text, *arguments):
        done = subprocess.run([Httpd.program, *arguments], capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL)
        equal(done.returncode, status, arguments, done.stderr)
        check(text in done.stderr, arguments, done.stderr)

    fails(2, "expected one DIRECTORY")
    fails(2, "--port takes a number", "--port", "x", "/")
    fails(2, "--grace takes seconds", "--grace", "nan", "/")
    fails(2, "--tls-key must follow", "--tls-key", "x", "/")
    fails(2, "--tls-key-log needs --tls-cert", "--tls-key-log", "x", "/")
    fails(2, "--back-end takes uring, epoll or poll", "--back-end", "select", "/")
    fails(1, "/nowhere: No such file", "/nowhere")
    fails(1, "/nowhere/log: No such file", "--log", "/nowhere/log", "/")
    fails(1, "nothing.pem", "--tls-cert", "nothing.pem", "/")
    with Httpd() as httpd:
        fails(1, "Address already in use", "--port", str(httpd.port), "/")
    done = subprocess.run([Httpd.program, "--help"], capture_output=True, text=True, check=True)
    check(done.stdout.startswith("usage: httpd ") and done.stderr == "")


def long_names_are_cut_between_characters():
    names = ["abc"[:shift] + character * (120 // len(character.encode())) for shift in range(4)
             for character in "\u00e4\u20ac\U0001f600"]
    with Httpd({name: TEXT for name in names}) as httpd:
        page = httpd.curl("URL/").decode()  # (all of it is UTF-8)
        for name in names:
            check(f">{name[:15]}" in page, name, page)
        equal(page.count("...</a>"), len(names))
        for shift in range(3):
            deep = "/".join(["abc"[:shift] + "\u20ac" * 60] * 4)
            os.makedirs(httpd.path(deep))
            page = httpd.curl("URL/" + urllib.parse.quote(deep) + "/").decode()
            check("\u20ac...</h1>" in page, page)


def refused_requests_are_logged():
    with Httpd({"a": TEXT}, ["--log", "-"]) as httpd:
        for request, line in ((b"GET /x HTTP/1.1\r\nbad header\r\n\r\n", r"GET /x HTTP/1\.1"),
                              (b"GET /y HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", r"GET /y HTTP/1\.1"),
                              (b"\x16\x03\x01\x02", r"\\x16\\x03\\x01\\x02")):
            with httpd.client() as client:
                client.sendall(request)
                check(read_all(client).startswith(b"HTTP/1.1 400 "), request)
            httpd.out.expect(rf'^127\.0\.0\.1 - - \[[^]]+\] "{line}" 400 0 ')


def http2_without_tls_by_prior_knowledge():
    if not speaks_http2():
        return "curl or httpd was built without HTTP/2"
    with Httpd({"1k": b"x" * 1024}, ["--log", "-"]) as httpd:
        equal(httpd.curl("--http2-prior-knowledge", "-w", " %{http_code} %{http_version}", "URL/1k"), b"x" * 1024 + b" 200 2")
        httpd.out.expect(r'^127\.0\.0\.1 .* "GET /1k HTTP/2\S*" 200 1024 ')
        equal(httpd.curl("--http1.1", "-w", " %{http_code} %{http_version}", "URL/1k"), b"x" * 1024 + b" 200 1.1")
        equal(httpd.curl("--http2", "-w", " %{http_version}", "URL/1k"), b"x" * 1024 + b" 1.1", "an upgrade is not offered:")


run(tests_of(dict(globals())), sys.argv[1:])
