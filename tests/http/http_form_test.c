/*
 * Pairs, bodies in memory and multipart bodies: what they contain, in pieces of every size, their bounds, and malformed
 * ones. Random ones are compared with a second implementation, which has the whole text at once.
 */
#include "http_peer.h"

static bide_slice slice(const char *string)
{
    return (bide_slice){string, strlen(string)};
}

static bool same(bide_slice text, const char *string)
{
    return text.size == strlen(string) && memcmp(text.data, string, text.size) == 0;
}

/* ---- Pairs ---- */

static void pairs_are_decoded(void **state)
{
    static const char text[] = "a=1&b+c=%2B+%41&&=x&d&e=&f=g=h&%00=%ff";
    char memory[64];
    bide_http_pairs pairs = {{text, sizeof text - 1}};
    bide_http_pair pair;
    (void)state;
    static const struct {
        const char *name, *value;
    } rows[] = {{"a", "1"}, {"b c", "+ A"}, {"", "x"}, {"d", NULL}, {"e", ""}, {"f", "g=h"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(bide_http_next_pair(&pairs, memory, sizeof memory, &pair), 1);
        assert_true(same(pair.name, rows[i].name));
        assert_int_equal(pair.value.data != NULL, rows[i].value != NULL);
        assert_true(rows[i].value == NULL || same(pair.value, rows[i].value));
    }
    assert_int_equal(bide_http_next_pair(&pairs, memory, sizeof memory, &pair), 1);
    assert_true(pair.name.size == 1 && pair.name.data[0] == '\0');
    assert_true(pair.value.size == 1 && pair.value.data[0] == '\xff');
    for (int i = 0; i < 2; i++)
        assert_int_equal(bide_http_next_pair(&pairs, memory, sizeof memory, &pair), 0);
    pairs = (bide_http_pairs){{NULL, 0}};
    assert_int_equal(bide_http_next_pair(&pairs, memory, sizeof memory, &pair), 0);
}

static void after_a_bad_pair_the_next_one_follows(void **state)
{
    char memory[4];
    bide_http_pairs pairs = {slice("a=%4&%g=1&abcde=1&abc=de&abc=d&x=%")};
    bide_http_pair pair;
    (void)state;
    assert_int_equal(bide_http_next_pair(&pairs, memory, sizeof memory, &pair), -EINVAL);
    assert_int_equal(bide_http_next_pair(&pairs, memory, sizeof memory, &pair), -EINVAL);
    assert_int_equal(bide_http_next_pair(&pairs, memory, sizeof memory, &pair), -EMSGSIZE);
    assert_int_equal(bide_http_next_pair(&pairs, memory, sizeof memory, &pair), -EMSGSIZE);
    assert_int_equal(bide_http_next_pair(&pairs, memory, sizeof memory, &pair), 1);
    assert_true(same(pair.name, "abc") && same(pair.value, "d"));
    assert_int_equal(bide_http_next_pair(&pairs, memory, sizeof memory, &pair), -EINVAL);
    assert_int_equal(bide_http_next_pair(&pairs, memory, sizeof memory, &pair), 0);
}

static void a_pair_is_found_by_its_name(void **state)
{
    bide_slice text = slice("a=1&%62%20c=x+y&b=%4&a=2&d&%e=1");
    char out[8];
    (void)state;
    assert_int_equal(bide_http_find_pair(text, "a", out, sizeof out), 1);
    assert_int_equal(out[0], '1');
    assert_int_equal(bide_http_find_pair(text, "b c", out, sizeof out), 3);
    assert_memory_equal(out, "x y", 3);
    assert_int_equal(bide_http_find_pair(text, "b", out, sizeof out), -EINVAL);
    assert_int_equal(bide_http_find_pair(text, "d", out, sizeof out), 0);
    assert_int_equal(bide_http_find_pair(text, "%e", out, sizeof out), -ENOENT);
    assert_int_equal(bide_http_find_pair(text, "", out, sizeof out), -ENOENT);
    assert_int_equal(bide_http_find_pair(text, "b c", out, 2), -EMSGSIZE);
    assert_int_equal(bide_http_find_pair((bide_slice){NULL, 0}, "a", out, 2), -ENOENT);
}

static void pairs_are_appended(void **state)
{
    char out[64];
    (void)state;
    ptrdiff_t used = bide_http_append_pair(out, sizeof out, 0, slice("a b"), slice("1&2=\xc3\xa4~"));
    assert_true(same((bide_slice){out, (size_t)used}, "a+b=1%262%3D%C3%A4%7E"));
    used = bide_http_append_pair(out, sizeof out, (size_t)used, slice("c"), (bide_slice){NULL, 0});
    used = bide_http_append_pair(out, sizeof out, (size_t)used, slice("d"), slice(""));
    assert_true(same((bide_slice){out, (size_t)used}, "a+b=1%262%3D%C3%A4%7E&c&d="));
    /* in each size of memory it fits or does not, and writes no further */
    for (size_t size = 0; size < 12; size++) {
        memset(out, '#', sizeof out);
        used = bide_http_append_pair(out, size, 0, slice("a&"), slice("x+"));
        assert_int_equal(used, size < 9 ? -EMSGSIZE : 9);
        assert_int_equal(out[size], '#');
    }
}

/* The second implementation: a digit at a time, into memory that is large enough. Returns false on a bad "%". */
static bool decode_simply(const char *begin, const char *end, char *out, size_t *size)
{
    static const char digits[] = "0123456789abcdefABCDEF";
    *size = 0;
    while (begin != end) {
        int byte = *begin++;
        if (byte == '+')
            byte = ' ';
        else if (byte == '%') {
            int value = 0;
            for (int i = 0; i < 2; i++) {
                const char *at = begin != end && *begin != '\0' ? strchr(digits, *begin) : NULL;
                if (at == NULL)
                    return false;
                value = value * 16 + (int)(at - digits < 16 ? at - digits : at - digits - 6);
                begin++;
            }
            byte = value;
        }
        out[(*size)++] = (char)byte;
    }
    return true;
}

static void random_pairs_are_as_a_second_implementation_has_them(void **state)
{
    static const char bytes[] = "aab=&&+%4142zZ\0\xff";
    unsigned executions = 50000, pairs_seen = 0, bad = 0;
    uint64_t random = testing_seed();
    (void)state;
    for (unsigned n = 0; n < executions; n++) {
        char text[24], memory[32], name[32], value[32];
        size_t size = testing_random(&random) % sizeof text;
        for (size_t i = 0; i < size; i++)
            text[i] = bytes[testing_random(&random) % (sizeof bytes - 1)];
        bide_http_pairs pairs = {{text, size}};
        bide_http_pair pair;
        for (size_t at = 0; at < size;) {
            size_t end = at;
            while (end < size && text[end] != '&')
                end++;
            if (end != at) {
                size_t equals = at;
                while (equals < end && text[equals] != '=')
                    equals++;
                size_t name_size, value_size = 0;
                bool is_good = decode_simply(text + at, text + equals, name, &name_size);
                if (is_good && equals != end)
                    is_good = decode_simply(text + equals + 1, text + end, value, &value_size);
                assert_int_equal(bide_http_next_pair(&pairs, memory, sizeof memory, &pair),
                                 is_good ? 1 : -EINVAL);
                pairs_seen++;
                bad += !is_good;
                if (is_good) {
                    assert_int_equal(pair.name.size, name_size);
                    assert_memory_equal(pair.name.data, name, name_size);
                    assert_int_equal(pair.value.data != NULL, equals != end);
                    assert_int_equal(pair.value.size, value_size);
                    assert_true(value_size == 0 || memcmp(pair.value.data, value, value_size) == 0);
                }
            }
            at = end + 1;
        }
        assert_int_equal(bide_http_next_pair(&pairs, memory, sizeof memory, &pair), 0);
    }
    printf("# %u executions, %u pairs, %u of them malformed\n", executions, pairs_seen, bad);
}

/* ---- Whole bodies ---- */

static peer one;
static size_t body_room;
static bool was_form;

struct body_handler {
    bide_http_exchange exchange;
    bide_http_body_operation body;
    char text[256];
    char value[64];
};

bide_coroutine(body_handler_body)
{
    bide_begin(body_handler_body, struct body_handler * self);
    handled.begun++;
    was_form = bide_http_is_form(&self->exchange);
    bide_try(bide_http_read_body(&self->body, &self->exchange, self->text, body_room));
    ptrdiff_t size = bide_http_find_pair((bide_slice){self->text, self->body.count}, "email", self->value,
                                         sizeof self->value);
    bide_try(bide_http_respond(&self->exchange, self->value, size < 0 ? 0 : (size_t)size));
    bide_finally();
    handled.ended++;
    bide_end();
}

#define FORM "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/X-www-form-urlencoded; charset=utf-8\r\n"

static void a_body_is_read_as_a_whole(void **state)
{
    (void)state;
    peer_init(&one, &(bide_http_options){.handler = {&body_handler_body, sizeof(struct body_handler)}});
    body_room = 24;
    for (one.piece = 0; one.piece < 20; one.piece++) {
        assert_int_equal(peer_say(&one, FORM "Content-Length: 24\r\n\r\nname=a+b&email=a%40b.org"), 0);
        assert_non_null(strstr(one.output, "\r\n\r\na@b.org"));
        assert_true(was_form);
        assert_int_equal(peer_say(&one, FORM "Transfer-Encoding: chunked\r\n\r\n5\r\nemail\r\n4\r\n=%41\r\n0\r\n\r\n"), 0);
        assert_non_null(strstr(one.output, "\r\n\r\nA"));
        assert_int_equal(peer_say(&one, "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\n\r\n"), 0);
        assert_false(was_form);
        /* a byte more than the memory is refused, and the client is told why */
        assert_int_equal(peer_say(&one, FORM "Content-Length: 25\r\n\r\nname=a+b&email=a%40b.orgx"), 0);
        assert_int_equal(strncmp(one.output, "HTTP/1.1 413 ", 13), 0);
    }
    peer_end(&one);
}

/* ---- Multipart ---- */

enum { LOG = 1 << 16 };

/* What was received, as a text. */
static char received[LOG], expected[LOG];
static size_t received_size;
static bide_http_multipart_options options;
static size_t memory_size, read_size;
static unsigned skip; /* bit i: the data of part i is not read */

struct multipart_handler {
    bide_http_exchange exchange;
    bide_http_multipart parts;
    unsigned i;
    int status;
    char data[512];
    char memory[1024];
};

static void note(const void *data, size_t size)
{
    assert_true(received_size + size < LOG);
    memcpy(received + received_size, data, size);
    received_size += size;
}

static void note_text(const char *name, bide_slice text)
{
    note(name, strlen(name));
    if (text.data == NULL)
        note("-", 1);
    else
        note(text.data, text.size);
    note("\n", 1);
}

static void note_status(int status)
{
    char line[32];
    note(line, (size_t)snprintf(line, sizeof line, "status %d\n", status));
}

bide_coroutine(multipart_body)
{
    bide_begin(multipart_body, struct multipart_handler * self);
    handled.begun++;
    received_size = 0;
    self->status = bide_http_multipart_init(&self->parts, &self->exchange, self->memory, memory_size, &options);
    if (self->status < 0) {
        note_status(self->status);
        bide_return(self->status);
    }
    for (self->i = 0;; self->i++) {
        bide_await_status(self->status, bide_http_next_part(&self->parts));
        if (self->status < 0 || !self->parts.has_part)
            break;
        note_text("name ", self->parts.name);
        note_text("file ", self->parts.filename);
        note_text("type ", self->parts.type);
        if ((skip >> self->i % 32 & 1) != 0)
            continue;
        do {
            bide_await_status(self->status, bide_http_read_part(&self->parts, self->data, read_size));
            note(self->data, self->status == 0 ? self->parts.count : 0);
        } while (self->status == 0 && self->parts.count != 0);
        note("\nend\n", 5);
        if (self->status < 0)
            break;
    }
    note_status(self->status);
    bide_return(self->status);
    bide_finally();
    handled.ended++;
    bide_end();
}

/* Sends a body with this type. Returns the status of the response. */
static int send_multipart(const char *type, const char *body, size_t size)
{
    static char request[LOG];
    int head = snprintf(request, sizeof request,
                        "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: %s\r\nContent-Length: %zu\r\n\r\n", type, size);
    memcpy(request + head, body, size);
    assert_int_equal(peer_say_bytes(&one, request, (size_t)head + size), 0);
    received[received_size] = '\0';
    return atoi(one.output + 9);
}

static int send_form(const char *body)
{
    return send_multipart("multipart/form-data; boundary=b", body, strlen(body));
}

static int set_up(void **state)
{
    (void)state;
    peer_init(&one, &(bide_http_options){.handler = {&multipart_body, sizeof(struct multipart_handler)}});
    memset(&options, 0, sizeof options);
    memory_size = 1024;
    read_size = 512;
    skip = 0;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    peer_end(&one);
    return 0;
}

#define PART(name) "--b\r\nContent-Disposition: form-data; name=\"" name "\"\r\n\r\n"
#define END        "status 0\n"

static const char two_parts[] =
    "preamble\r\n--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nfirst\r\n-\r\n--\r\n--c\r\n\r\n--b \t\r\n"
    "content-type: text/plain\r\nCONTENT-DISPOSITION: Form-Data; filename=\"x \\\"y\\\\z\\w\"; name=b; size=1\r\n\r\n"
    "\r\n\r\nsecond\r\r\n--b--\r\nepilogue --b";
static const char two_parts_received[] =
    "name a\nfile -\ntype -\nfirst\r\n-\r\n--\r\n--c\r\n\nend\n"
    "name b\nfile x \"y\\z\\w\ntype text/plain\n\r\n\r\nsecond\r\nend\n" END;

static void parts_arrive_in_pieces_of_every_size(void **state)
{
    (void)state;
    for (one.piece = 0; one.piece <= sizeof two_parts + 10; one.piece++)
        for (read_size = 1; read_size < 8; read_size++) {
            assert_int_equal(send_form(two_parts), 200);
            assert_string_equal(received, two_parts_received);
        }
    one.piece = 0;
    read_size = 512;
    for (one.cut = 1; one.cut < sizeof two_parts + 150; one.cut++) {
        assert_int_equal(send_form(two_parts), 200);
        assert_string_equal(received, two_parts_received);
    }
    one.cut = 0;
}

static void parts_that_are_not_read_are_skipped(void **state)
{
    (void)state;
    for (one.piece = 0; one.piece <= 40; one.piece++)
        for (skip = 0; skip < 4; skip++) {
            snprintf(expected, sizeof expected, "name a\nfile -\ntype -\n%sname b\nfile x \"y\\z\\w\ntype text/plain\n%s" END,
                     (skip & 1) != 0 ? "" : "first\r\n-\r\n--\r\n--c\r\n\nend\n",
                     (skip & 2) != 0 ? "" : "\r\n\r\nsecond\r\nend\n");
            assert_int_equal(send_form(two_parts), 200);
            assert_string_equal(received, expected);
        }
}

static void empty_parts_and_bodies_are_allowed(void **state)
{
    (void)state;
    for (one.piece = 0; one.piece < 12; one.piece++) {
        assert_int_equal(send_form("--b--"), 200);
        assert_string_equal(received, END);
        assert_int_equal(send_form("\r\n--b--"), 200);
        assert_string_equal(received, END);
        assert_int_equal(send_form(PART("a") "\r\n--b--"), 200);
        assert_string_equal(received, "name a\nfile -\ntype -\n\nend\n" END);
        /* the line end of the empty line is that of the delimiter */
        assert_int_equal(send_form(PART("a") "--b--"), 200);
        assert_string_equal(received, "name a\nfile -\ntype -\n\nend\n" END);
        assert_int_equal(send_form(PART("a") "--c\r\n--b--"), 200);
        assert_string_equal(received, "name a\nfile -\ntype -\n--c\nend\n" END);
        assert_int_equal(send_form(PART("") "\r\n--b--"), 200);
        assert_string_equal(received, "name \nfile -\ntype -\n\nend\n" END);
        /* of another type than a form, a part needs no head */
        static const char mixed[] = "--b\r\n\r\nx\r\n--b\r\n\r\n--b--";
        assert_int_equal(send_multipart("multipart/mixed; boundary=b", mixed, sizeof mixed - 1), 200);
        assert_string_equal(received, "name -\nfile -\ntype -\nx\nend\nname -\nfile -\ntype -\n\nend\n" END);
    }
}

static void malformed_bodies_are_400(void **state)
{
    static const char *const bodies[] = {
        "", "--b", "--b\r\n", "--b-", "--c--", "x--b--", PART("a"), PART("a") "x", PART("a") "x\r\n--b", PART("a") "x\r\n--b-",
        PART("a") "x\r\n--bc\r\n", PART("a") "x\n--b--", PART("a") "x\r\n--b -- ", "--b\n\r\n--b--", "--b\rX--b--",
        "--b\r\n\r\nx\r\n--b--",                                                  /* no name */
        "--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n--b--",
        "--b\r\nContent-Disposition: attachment; name=a\r\n\r\nx\r\n--b--",
        "--b\r\nContent-Disposition: form-data; name=a; name=b\r\n\r\nx\r\n--b--", /* two */
        "--b\r\nContent-Disposition: form-data; name=\"a\r\n\r\nx\r\n--b--",
        "--b\r\nContent-Disposition: form-data; name=\"a\\\"\r\n\r\nx\r\n--b--",
        "--b\r\nContent-Disposition: form-data; name=a b\r\n\r\nx\r\n--b--",
        "--b\r\nContent-Disposition: form-data; name=\r\n\r\nx\r\n--b--",
        "--b\r\nContent-Disposition: form-data; name\r\n\r\nx\r\n--b--",
        "--b\r\nContent-Disposition: form-data; name=a\r\nContent-Disposition: form-data; name=a\r\n\r\nx\r\n--b--",
        "--b\r\nContent-Disposition: form-data; name=a\r\nContent-Type: a/b\r\nContent-Type: a/b\r\n\r\nx\r\n--b--",
        "--b\r\nContent-Disposition: form-data;\r\n name=a\r\n\r\nx\r\n--b--", /* folded */
        "--b\r\nContent-Disposition : form-data; name=a\r\n\r\nx\r\n--b--",
        "--b\r\nContent-Disposition: form-data; name=a\nX: y\r\n\r\nx\r\n--b--",
        "--b\r\nx\r\n\r\n--b--", "--b\r\n: x\r\n\r\n--b--",
    };
    (void)state;
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
        for (one.piece = 0; one.piece < 6; one.piece++) {
            int status = send_form(bodies[i]);
            if (status != 400 || strstr(received, "status -74\n") == NULL) /* -EBADMSG */
                fail_msg("%s: %d, %s", bodies[i], status, received);
        }
}

static void requests_that_are_not_multipart_are_refused(void **state)
{
    static const char *const types[] = {
        "text/plain", "multipart/form-data", "multipart/form-data; boundary=", "multipart/form-data; boundary=\"\"",
        "multipart/form-data; boundary=\"a", "multipart/form-data; boundary=a; boundary=a", "multipart/form-data; boundary=a b",
        "multipart/form-data; boundary=\"a \"", "multipart/form-data; boundary=\"a\\b\"", "multipart/form-data; x",
        "multipart/form-data; boundary=\"012345678901234567890123456789012345678901234567890123456789012345678901\"",
    };
    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        (void)send_multipart(types[i], "", 0);
        if (strcmp(received, "status -22\n") != 0) /* -EINVAL */
            fail_msg("%s: %s", types[i], received);
    }
    /* the longest, with all bytes that are special */
    static const char longest[] = "0123456789012345678901234567890123456789012345678901234567'()+_,-./:=?";
    char type[256], body[256];
    _Static_assert(sizeof longest == BIDE_HTTP_BOUNDARY + 1, "it is the longest");
    snprintf(type, sizeof type, "Multipart/Form-Data;BOUNDARY=\"%s\"; charset=utf-8", longest);
    snprintf(body, sizeof body, "--%s\r\nContent-Disposition: form-data; name=a\r\n\r\nx\r\n--%s--", longest, longest);
    memory_size = BIDE_HTTP_MULTIPART_MEMORY;
    for (one.piece = 0; one.piece < 90; one.piece++) {
        assert_int_equal(send_multipart(type, body, strlen(body)), 200);
        assert_string_equal(received, "name a\nfile -\ntype -\nx\nend\n" END);
    }
    memory_size = BIDE_HTTP_MULTIPART_MEMORY - 1;
    (void)send_multipart(type, body, strlen(body));
    assert_string_equal(received, "status -22\n");
}

static void bounds_are_kept(void **state)
{
    static char body[8192];
    (void)state;
    for (one.piece = 0; one.piece < 100; one.piece += 33) {
        /* parts */
        options = (bide_http_multipart_options){.max_parts = 2};
        assert_int_equal(send_form(PART("a") "\r\n" PART("b") "\r\n--b--"), 200);
        assert_int_equal(send_form(PART("a") "\r\n" PART("b") "\r\n" PART("c") "\r\n--b--"), 413);
        /* bytes of a part, read or not */
        options = (bide_http_multipart_options){.max_part = 5};
        for (skip = 0; skip < 2; skip++) {
            assert_int_equal(send_form("preamble" "\r\n" PART("a") "12345\r\n--b--"), 200);
            assert_int_equal(send_form(PART("a") "123456\r\n--b--"), 413);
        }
        skip = 0;
        /* bytes of a head: those of its lines */
        size_t head = sizeof "Content-Disposition: form-data; name=\"a\"\r\n" - 1;
        options = (bide_http_multipart_options){.max_head = head};
        assert_int_equal(send_form(PART("a") "x\r\n--b--"), 200);
        options.max_head = head - 1;
        assert_int_equal(send_form(PART("a") "x\r\n--b--"), 431);
        /* by the memory: 1024 less 256 */
        memset(&options, 0, sizeof options);
        for (size_t more = 0; more < 3; more++) {
            size_t size = (size_t)snprintf(body, sizeof body, "--b\r\nContent-Disposition: form-data; name=a\r\nX: ");
            size_t lines = 1024 - 256 - (size - 5) - 2 - 1 + more;
            memset(body + size, 'x', lines);
            snprintf(body + size + lines, sizeof body - size - lines, "\r\n\r\nx\r\n--b--");
            assert_int_equal(send_form(body), more < 2 ? 200 : 431);
        }
        /* fields */
        size_t size = (size_t)snprintf(body, sizeof body, "--b\r\nContent-Disposition: form-data; name=a\r\n");
        for (int i = 1; i < BIDE_HTTP_PART_FIELDS; i++)
            size += (size_t)snprintf(body + size, sizeof body - size, "X: y\r\n");
        snprintf(body + size, sizeof body - size, "\r\nx\r\n--b--");
        assert_int_equal(send_form(body), 200);
        snprintf(body + size, sizeof body - size, "X: y\r\n\r\nx\r\n--b--");
        assert_int_equal(send_form(body), 431);
    }
}

static void large_parts_pass_through_little_memory(void **state)
{
    static char body[30000];
    (void)state;
    memory_size = BIDE_HTTP_MULTIPART_MEMORY;
    size_t size = (size_t)snprintf(body, sizeof body, PART("a"));
    for (size_t i = 0; i < 20000; i++)
        body[size++] = "\r\n--a"[i * i % 5];
    snprintf(body + size, sizeof body - size, "\r\n--b--");
    size_t data = sizeof PART("a") - 1;
    for (one.piece = 0; one.piece < 3000; one.piece = one.piece * 7 + 1) {
        assert_int_equal(send_form(body), 200);
        assert_int_equal(received_size, sizeof "name a\nfile -\ntype -\n" - 1 + 20000 + sizeof "\nend\n" END - 1);
        assert_memory_equal(received + sizeof "name a\nfile -\ntype -\n" - 1, body + data, 20000);
    }
}

static void an_error_of_the_body_ends_it(void **state)
{
    (void)state;
    assert_int_equal(peer_say(&one, "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: multipart/form-data; boundary=b\r\n"
                                    "Transfer-Encoding: chunked\r\n\r\n4\r\n--b\r\r\nx\r\n"), 0);
    assert_int_equal(strncmp(one.output, "HTTP/1.1 400 ", 13), 0);
}

/* ---- The second implementation ---- */

/*
 * Takes the whole body apart by lines: a line that begins with "--b" is a delimiter. Writes what the handler would. Only
 * for heads without errors in them but those that the test makes.
 */
static void take_apart(const char *body, size_t size)
{
    enum { PREAMBLE, HEAD, DATA } where = PREAMBLE;
    size_t at = 0;
    bool has_name = false, begins = true;
    size_t data_from = 0;
    received_size = 0;
    for (;;) {
        const char *line = body + at;
        const char *end = memmem(line, size - at, "\r\n", 2);
        size_t length = end != NULL ? (size_t)(end - line) : size - at;
        bool is_delimiter = where != HEAD && length >= 3 && memcmp(line, "--b", 3) == 0;
        if (is_delimiter) {
            if (where == DATA) {
                size_t until = begins ? data_from : at - 2;
                note(body + data_from, until - data_from);
            }
            size_t blanks = 3;
            if (length >= 5 && memcmp(line + 3, "--", 2) == 0) {
                if (where == DATA)
                    note("\nend\n", 5);
                note(END, sizeof END - 1);
                return;
            }
            while (blanks < length && (line[blanks] == ' ' || line[blanks] == '\t'))
                blanks++;
            if (blanks != length || end == NULL)
                break;
            if (where == DATA)
                note("\nend\n", 5);
            where = HEAD;
            has_name = false;
        } else if (where == HEAD) {
            if (end == NULL)
                break;
            if (length == 0) {
                if (!has_name)
                    break;
                note("name a\nfile -\ntype -\n", 21);
                where = DATA;
                data_from = at + 2;
                begins = true;
                at += 2;
                continue;
            }
            size_t before = length >= 38 ? length - 38 : 0; /* (something before the name makes another field of it) */
            if (length < 38 || memcmp(line + before, "Content-Disposition: form-data; name=a", 38) != 0 ||
                (before == 0 && has_name))
                break;
            bool is_token = true;
            for (size_t i = 0; i < before; i++)
                is_token = is_token && strchr("-xbc", line[i]) != NULL;
            if (!is_token)
                break;
            has_name = has_name || before == 0;
        }
        if (where == DATA)
            begins = false;
        if (end == NULL)
            break;
        at += length + 2;
    }
    received_size = 0;
    note("bad", 3);
}

static void random_bodies_are_as_a_second_implementation_has_them(void **state)
{
    static const char *const words[] = {"--b", "\r\n", "\r\n--b\r\n", "--b--", "-", "\r", "\n", " ", "x", "b",
                                        "Content-Disposition: form-data; name=a\r\n\r\n",
                                        "\r\n--b\r\nContent-Disposition: form-data; name=a\r\n\r\n",
                                        "Content-Disposition: form-data; name=a\r\n", "\r\n--b--", "--c\r\n"};
    unsigned executions = 5000, good = 0;
    uint64_t random = testing_seed();
    (void)state;
    for (unsigned n = 0; n < executions; n++) {
        char body[600];
        size_t size = 0;
        for (unsigned words_left = 1 + testing_random(&random) % 9; words_left != 0; words_left--) {
            const char *word = words[testing_random(&random) % (sizeof words / sizeof *words)];
            memcpy(body + size, word, strlen(word));
            size += strlen(word);
        }
        if (testing_random(&random) % 2 != 0) {
            memcpy(body + size, "\r\n--b--", 7);
            size += 7;
        }
        take_apart(body, size);
        size_t wanted = received_size;
        memcpy(expected, received, wanted);
        expected[wanted] = '\0';
        one.piece = testing_random(&random) % 12;
        read_size = 1 + testing_random(&random) % 20;
        int status = send_multipart("multipart/form-data; boundary=b", body, size);
        bool is_good = strcmp(expected, "bad") != 0;
        good += is_good;
        if (status != (is_good ? 200 : 400) || (is_good && strcmp(received, expected) != 0))
            fail_msg("%.*s\nwanted %s\nreceived %d %s", (int)size, body, expected, status, received);
    }
    printf("# %u executions, %u bodies that are well-formed\n", executions, good);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        cmocka_unit_test(pairs_are_decoded),
        cmocka_unit_test(after_a_bad_pair_the_next_one_follows),
        cmocka_unit_test(a_pair_is_found_by_its_name),
        cmocka_unit_test(pairs_are_appended),
        cmocka_unit_test(random_pairs_are_as_a_second_implementation_has_them),
        cmocka_unit_test(a_body_is_read_as_a_whole),
        TEST(parts_arrive_in_pieces_of_every_size),
        TEST(parts_that_are_not_read_are_skipped),
        TEST(empty_parts_and_bodies_are_allowed),
        TEST(malformed_bodies_are_400),
        TEST(requests_that_are_not_multipart_are_refused),
        TEST(bounds_are_kept),
        TEST(large_parts_pass_through_little_memory),
        TEST(an_error_of_the_body_ends_it),
        TEST(random_bodies_are_as_a_second_implementation_has_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
