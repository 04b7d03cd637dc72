#!/bin/sh
# Mistakes of a first program: the first error, or the line of the translator itself, says what to do.
# first_hour_test.sh BIDEC ROOT [LIBRARY NEEDS]: links are tested with that static library, and what it needs
# shellcheck source=tests/bidec/opening.sh
. "$(dirname "$0")/opening.sh"
export LC_ALL=C
include=-I$root/include
libraries="$library ${4-}"
cases=0

# NAME SENTENCE COMMAND...: the command fails, and says the sentence: as its first error if that begins with "error: ".
says() {
    name=$1 sentence=$2
    shift 2
    cases=$((cases + 1))
    if "$@" >said 2>&1; then
        echo "not ok $cases - $name: was not rejected"
        failed=1
        return
    fi
    case $sentence in
    error:*) grep -iE -m1 'error: ' said >first ;;
    *) cp said first ;;
    esac
    if grep -qF -- "${sentence#error: }" first; then
        echo "ok $cases - $name"
    else
        echo "not ok $cases - $name: should say: $sentence"
        head -20 said | sed 's/^/# /'
        failed=1
    fi
}

# NAME TEXT COMMAND...: the command fails, and does not say the text.
silent() {
    name=$1 text=$2
    shift 2
    cases=$((cases + 1))
    if ! "$@" >said 2>&1 && ! grep -qF -- "$text" said; then
        echo "ok $cases - $name"
    else
        echo "not ok $cases - $name: should not say: $text"
        head -20 said | sed 's/^/# /'
        failed=1
    fi
}

# NAME: it compiles, and nothing is said.
accepts() {
    name=$1
    shift
    cases=$((cases + 1))
    if "$@" >said 2>&1 && [ ! -s said ]; then
        echo "ok $cases - $name"
    else
        echo "not ok $cases - $name"
        head -20 said | sed 's/^/# /'
        failed=1
    fi
}

cat >right.c <<'END'
#include <bide/async.h>
#include <bide/bide.h>

async int twice(int n)
{
    await bide_sleep_for(1);
    return 2 * n;
}

async int main(void)
{
    return await twice(21) != 42;
}
END
sed '/async.h/d' right.c >operation_without_header.c
sed 's/async int main/int main/' right.c >plain_main.c
sed 's/await twice/twice/' right.c >forgotten.c
sed '/bide.h/d' right.c >main_without_loop.c
printf '#include <bide/bide.h>\nint main(void) { return 0; }\n' >plain.c
printf '#include <bide/bide.hpp>\nint main() { return 0; }\n' >plus.cpp

accepts 'without a mistake' "$bidec" gcc "$include" -c right.c
accepts 'without a mistake, with -std=c11' "$bidec" gcc -std=c11 "$include" -c right.c
says 'compiled without the translator' 'error: compile this file with bidec: bidec gcc ...' gcc "$include" -c right.c
says 'the translator without a compiler' 'bidec: the compiler comes first: bidec gcc right.c ...' "$bidec" right.c "$include"
says 'bide.h for async.h, and an operation' \
    'bidec: operation_without_header.c uses await without its header: write #include <bide/async.h>' \
    "$bidec" gcc "$include" -c operation_without_header.c
printf '#include "missing.h"\n#include "own.h"\n' >two_headers.c
sed '/#include/d' right.c >>two_headers.c
printf '#include <bide/async.h>\n#include <bide/bide.h>\n' >own.h
says 'a header that is missing' 'error: missing.h' "$bidec" gcc "$include" -c two_headers.c
silent 'async.h, which an own header includes' 'bide/async.h' "$bidec" gcc "$include" -c two_headers.c
sed -i '/missing.h/d' two_headers.c
accepts 'async.h in an own header' "$bidec" gcc "$include" -c two_headers.c
says 'await in a plain main' \
    'error: await is used in main, which is a plain function: declare that async, or run an async function from here with bide_sync_wait' \
    "$bidec" gcc "$include" -c plain_main.c
says 'an async main without a loop' 'error: an async main runs on a loop: include bide/loop.h' \
    "$bidec" gcc "$include" -c main_without_loop.c
sed 's/return await twice(21) != 42;/spawn(twice(21)); return 0;/' right.c >without_scope.c
sed 's/async int main/int main/' without_scope.c >spawn_in_plain.c
sed 's/await twice(21) != 42/spawn(21)/; s/^async int main/int spawn(int n);\nint main/' right.c >own_spawn.c
says 'a spawn without a scope' 'error: spawn() takes a scope and the call of an async function: spawn(&scope, f(...))' \
    "$bidec" gcc "$include" -c without_scope.c
says 'a spawn in a plain main' \
    'error: spawn is used in main, which is a plain function: declare that async, or start the async function with bide_spawn' \
    "$bidec" gcc "$include" -c spawn_in_plain.c
accepts 'a function of the user that is called spawn' "$bidec" gcc "$include" -c own_spawn.c
says 'a call without await' 'error: twice is async' "$bidec" gcc "$include" -c forgotten.c
says 'C of 1989' 'error: bide needs C11: compile with -std=c11 or -std=gnu11' gcc -std=c89 "$include" -c plain.c
if command -v g++ >/dev/null && printf 'int main() {}\n' | g++ -std=c++20 -fsyntax-only -x c++ - 2>said; then
    says 'bide.hpp in C' 'error: bide/bide.hpp is for C++: in C, include bide/bide.h' gcc "$include" -x c -c plus.cpp
    says 'bide.hpp in C++17' 'error: bide/bide.hpp needs C++20: compile with -std=c++20' g++ -std=c++17 "$include" -c plus.cpp
    says 'async functions in C++' 'error: async functions are C: put them into a .c file, for bidec gcc' "$bidec" g++ -std=c++20 "$include" -x c++ -c right.c
fi

# A library beside bide is forgotten: in a body, and in an async function.
cat >tls.c <<'END'
#include <bide/tls.h>

int main(void)
{
    bide_tls_config *config;
    return bide_tls_client_create(&config, NULL, NULL) != 0;
}
END
sed 's/bide_tls_client/bide_tls_server/' tls.c >tls_server.c
cat >http.c <<'END'
#include <bide/async.h>
#include <bide/http_agent.h>
#include <bide/loop.h>

async int main(void)
{
    bide_http_agent *agent;
    return bide_http_agent_create(&agent, &(bide_http_agent_options){.max_connections = 1, .max_head = 0});
}
END
cat >server.c <<'END'
#include <bide/http_client.h>
#include <bide/http_server.h>
#include <bide/websocket.h>

int main(int count, char **arguments)
{
    static bide_http_server server;
    static bide_http_client client;
    static bide_websocket websocket;
    static char memory[BIDE_HTTP_CLIENT_MEMORY];
    (void)arguments;
    switch (count) {
#ifdef SERVER
    case 1: return bide_http_server_init(&server, &(bide_http_options){.max_connections = 1});
#endif
#ifdef CLIENT
    case 2: return bide_http_client_init(&client, (bide_stream){0}, memory, sizeof memory, NULL);
#endif
#ifdef WEBSOCKET
    case 3: return bide_websocket_init(&websocket, (bide_stream){0}, &(bide_websocket_options){.role = 0});
#endif
    }
    return (int)sizeof server + (int)sizeof client + (int)sizeof websocket + memory[0];
}
END
cat >log_body.c <<'END'
#include <bide/bide.h>
#include <bide/message_log.h>

int main(void)
{
    bide_log *log;
    bide_log_operation operation;
    return bide_sync_wait(bide_log_open(&operation, &log, "ring:"));
}
END
cat >log_async.c <<'END'
#include <bide/async.h>
#include <bide/loop.h>
#include <bide/message_log.h>

async int main(void)
{
    bide_log *log;
    return await bide_log_open(&log, "ring:");
}
END
cat >http2.c <<'END'
#include <bide/http2.h>
#include <bide/http2_client.h>

int main(int count, char **arguments)
{
    static bide_http2 http2;
    static bide_http_server server;
    static bide_http2_client client;
    (void)arguments;
    switch (count) {
#ifdef SERVER
    case 1: return bide_http2_init(&http2, &server, NULL);
#endif
#ifdef CLIENT
    case 2: return bide_http2_client_init(&client, (bide_stream){0}, NULL);
#endif
    }
    return (int)sizeof http2 + (int)sizeof server + (int)sizeof client;
}
END
if [ -n "$library" ]; then
    # shellcheck disable=SC2086 # a list of words
    for name in tls tls_server; do
        says "$name.c without bide-tls" 'bide_link_with_lbide_tls_' gcc "$include" $name.c $libraries -o program
    done
    # shellcheck disable=SC2086
    says 'an async main without bide-http' 'bide_link_with_lbide_http_' "$bidec" gcc "$include" http.c $libraries -o program
    for part in SERVER CLIENT WEBSOCKET; do
        # shellcheck disable=SC2086
        says "$part without bide-http" 'bide_link_with_lbide_http_' gcc "$include" -D$part server.c $libraries -o program
    done
    # shellcheck disable=SC2086
    says 'a body without bide-log' 'bide_link_with_lbide_log_' gcc "$include" log_body.c $libraries -o program
    # shellcheck disable=SC2086
    says 'an async function without bide-log' 'bide_link_with_lbide_log_' "$bidec" gcc "$include" log_async.c $libraries -o program
    for part in SERVER CLIENT; do
        # shellcheck disable=SC2086
        says "$part without bide-http2" 'bide_link_with_lbide_http2_' gcc "$include" -D$part http2.c $libraries -o program
    done
    # shellcheck disable=SC2086
    accepts 'the headers of bide-http2 without their functions' gcc "$include" http2.c $libraries -o program
    # shellcheck disable=SC2086
    accepts 'the headers of bide-http without their functions' gcc "$include" server.c $libraries -o program
fi
echo "1..$cases"
exit $failed
