/*
 * The reader of server-sent events: a table of the grammar, cut at each byte; drawn texts, compared with a second, simple
 * implementation; bounds; and events of the library's server.
 */
#include "http_peer.h"

#include <bide/http_event_reader.h>
#include <bide/http_events.h>

enum { ROOM = 4096, TEXT = 8192 };

/* The events that a reader has found, as text: "type(id)data" and a semicolon for each, and a retry at the end. */
static char found[TEXT];
static size_t found_size;

static void add(const char *text, size_t size)
{
    assert_true(found_size + size < sizeof found);
    if (size != 0)
        memcpy(found + found_size, text, size);
    found[found_size += size] = '\0';
}

static void add_event(bide_slice type, bide_slice id, bide_slice data)
{
    add(type.data, type.size);
    add("(", 1);
    add(id.data, id.size);
    add(")", 1);
    add(data.data, data.size);
    add(";", 1);
}

static void add_retry(bool has_retry, uint32_t retry)
{
    char text[20];
    if (has_retry)
        add(text, (size_t)snprintf(text, sizeof text, "%u", retry));
}

/* Reads `text` in pieces of at most `piece` bytes, each in memory of its own. Returns the last status. */
static int read_all(bide_http_event_reader *reader, const char *text, size_t size, size_t piece)
{
    int status = 0;
    for (size_t at = 0; at < size && status == 0; at += piece) {
        size_t count = size - at < piece ? size - at : piece;
        char *copy = malloc(count);
        memcpy(copy, text + at, count);
        bide_slice bytes = {copy, count};
        while ((status = bide_http_next_event(reader, &bytes)) == 1)
            add_event(reader->type, reader->id, reader->data);
        assert_true(status < 0 || bytes.size == 0);
        free(copy);
    }
    return status;
}

static void read_new(bide_http_event_reader *reader, const char *text, size_t size, size_t piece, int expected)
{
    static char memory[ROOM];
    found_size = 0;
    found[0] = '\0';
    bide_http_event_reader_init(reader, memory, sizeof memory);
    assert_int_equal(read_all(reader, text, size, piece), expected);
    add_retry(reader->has_retry, reader->retry);
}

#define ROW(text, expected) {text, sizeof(text) - 1, expected}

static const struct row {
    const char *text;
    size_t size;
    const char *expected;
} rows[] = {
    ROW("", ""),
    ROW("data: hello\n\n", "message()hello;"),
    ROW("data: hello\n", ""), /* it has not ended */
    ROW("data:hello\r\n\r\n", "message()hello;"),
    ROW("data:hello\r\r", "message()hello;"),
    ROW("data:a\r\n\rdata:b\n\r\n", "message()a;message()b;"),
    ROW("data:  a \n\n", "message() a ;"),
    ROW("data: a\ndata: b\ndata\ndata:\n\n", "message()a\nb\n\n;"),
    ROW("data\n\ndata\ndata\n\ndata:", "message();message()\n;"), /* the example of the standard */
    ROW(": comment\n\n:\n\ndata:a\n:b\n\n", "message()a;"),
    ROW("event: news\ndata: a\n\ndata: b\n\n", "news()a;message()b;"),
    ROW("event: news\n\ndata: b\n\n", "message()b;"), /* without data there is no event */
    ROW("event:a\nevent\ndata:b\n\n", "message()b;"),
    ROW("id: 7\ndata: a\n\ndata: b\n\nid\ndata: c\n\n", "message(7)a;message(7)b;message()c;"),
    ROW("id: 7\n\ndata: b\n\n", "message(7)b;"), /* an id counts without data */
    ROW("id: a\0b\ndata: c\n\n", "message()c;"),
    ROW("retry: 10\n\n", "10"),
    ROW("retry: 10\nretry: 1x\nretry: -1\nretry:\nretry\nretry:  2\n", "10"),
    ROW("retry: 4294967295\n", "4294967295"),
    ROW("retry: 99999999999999999999999999999999\n", "4294967295"),
    ROW("\xef\xbb\xbf" "data: a\n\n\xef\xbb\xbf" "data: b\n\n", "message()a;"),
    ROW("\xef\xbb" "data: a\n\ndata: b\n\n", "message()b;"),
    ROW("\xef\ndata: b\n\n", "message()b;"),
    ROW("\n\n\r\n\rdata: a\n\n\n", "message()a;"),
    ROW("Data: a\n data: b\ndata : c\ndatax: d\ndat: e\nunknownname: f\nlonger than any: g\ndata: h\n\n", "message()h;"),
    ROW("data: a: b\n\n", "message()a: b;"),
    ROW("data: \0\n\n", NULL), /* a NUL is a byte like others */
};

static void the_grammar_is_that_of_the_standard_however_it_is_cut(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t piece = 1; piece <= rows[i].size + 1; piece++) {
            bide_http_event_reader reader;
            read_new(&reader, rows[i].text, rows[i].size, piece, 0);
            if (rows[i].expected == NULL)
                assert_memory_equal(found, "message()\0;", found_size);
            else
                assert_string_equal(found, rows[i].expected);
        }
}

/* ---- The second implementation: all lines at once ---- */

static void second(const char *text, size_t size)
{
    static char data[TEXT], type[TEXT], id[TEXT];
    size_t data_size = 0, type_size = 0, id_size = 0;
    bool has_retry = false;
    uint32_t retry = 0;
    found_size = 0;
    found[0] = '\0';
    if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
        text += 3;
        size -= 3;
    }
    while (size != 0) {
        size_t end = 0;
        while (end < size && text[end] != '\n' && text[end] != '\r')
            end++;
        if (end == size)
            break; /* not a whole line */
        const char *colon = memchr(text, ':', end);
        size_t name = colon != NULL ? (size_t)(colon - text) : end;
        const char *value = colon != NULL ? colon + 1 : text + end;
        size_t count = (size_t)(text + end - value);
        if (count != 0 && *value == ' ') {
            value++;
            count--;
        }
        if (end == 0) {
            if (data_size != 0)
                add_event(type_size != 0 ? (bide_slice){type, type_size} : (bide_slice){"message", 7},
                          (bide_slice){id, id_size}, (bide_slice){data, data_size - 1});
            data_size = type_size = 0;
        } else if (name == 4 && memcmp(text, "data", 4) == 0) {
            memcpy(data + data_size, value, count);
            data_size += count;
            data[data_size++] = '\n';
        } else if (name == 5 && memcmp(text, "event", 5) == 0) {
            memcpy(type, value, type_size = count);
        } else if (name == 2 && memcmp(text, "id", 2) == 0 && memchr(value, '\0', count) == NULL) {
            memcpy(id, value, id_size = count);
        } else if (name == 5 && memcmp(text, "retry", 5) == 0 && count != 0) {
            uint64_t number = 0;
            size_t i = 0;
            for (; i < count && value[i] >= '0' && value[i] <= '9'; i++)
                number = number > UINT32_MAX ? number : number * 10 + (uint64_t)(value[i] - '0');
            if (i == count) {
                has_retry = true;
                retry = number > UINT32_MAX ? UINT32_MAX : (uint32_t)number;
            }
        }
        end += end + 1 < size && memcmp(text + end, "\r\n", 2) == 0 ? 2 : 1;
        text += end;
        size -= end;
    }
    add_retry(has_retry, retry);
}

static uint64_t draws;

static unsigned draw(unsigned count)
{
    draws = draws * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (unsigned)(draws >> 33) % count;
}

static void drawn_texts_are_read_as_by_a_second_reader(void **state)
{
    static const char *const words[] = {"data", "event", "id", "retry", ":", " ", "\n", "\r", "\r\n", "a", "7", "data: ",
                                        "\n\n", "id: 1", "retry: 12", "\xef\xbb\xbf", "\xef", "event: b", "::", "dat", "datas"};
    const char *given = getenv("BIDE_SEED");
    uint64_t seed = given != NULL ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    (void)state;
    printf("# seed %llu\n", (unsigned long long)seed);
    draws = seed;
    for (int i = 0; i < 50000; i++) {
        static char text[TEXT], expected[TEXT];
        size_t size = 0, expected_size;
        bide_http_event_reader reader;
        for (unsigned left = draw(13); left != 0; left--) { /* (no line is too long for a type) */
            const char *word = words[draw(sizeof words / sizeof *words)];
            memcpy(text + size, word, strlen(word));
            size += strlen(word);
            if (draw(50) == 0)
                text[size++] = '\0';
        }
        second(text, size);
        memcpy(expected, found, found_size);
        expected_size = found_size;
        read_new(&reader, text, size, 1 + draw(10), 0);
        if (found_size != expected_size || memcmp(found, expected, found_size) != 0) {
            printf("# %.*s\n", (int)size, text);
            fail();
        }
    }
}

/* ---- Bounds ---- */

static void what_is_too_long_is_an_error_and_stays_one(void **state)
{
    static char text[2 * ROOM], memory[64];
    (void)state;
    static const struct {
        const char *name;
        size_t max;
    } fields[] = {{"data:", sizeof memory - 1}, {"event:", BIDE_HTTP_EVENT_TYPE}, {"id:", BIDE_HTTP_EVENT_ID}};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        for (size_t more = 0; more < 2; more++) {
            static char large[1024];
            bide_http_event_reader reader;
            size_t size = (size_t)snprintf(text, sizeof text, "%s", fields[i].name);
            memset(text + size, 'x', fields[i].max + more);
            size += fields[i].max + more;
            size += (size_t)snprintf(text + size, 20, i == 0 ? "\n\n" : "\ndata\n\n");
            found_size = 0;
            bide_http_event_reader_init(&reader, i == 0 ? memory : large, i == 0 ? sizeof memory : sizeof large);
            assert_int_equal(read_all(&reader, text, size, 7), more != 0 ? -EMSGSIZE : 0);
            assert_int_equal(found_size != 0, more == 0);
            assert_int_equal(read_all(&reader, "data: a\n\n", 9, 9), more != 0 ? -EMSGSIZE : 0);
            bide_http_event_reader_restart(&reader);
            assert_int_equal(read_all(&reader, "data: a\n\n", 9, 9), 0);
        }
    /* lines that nobody keeps have no bound */
    bide_http_event_reader reader;
    bide_http_event_reader_init(&reader, memory, sizeof memory);
    memset(text, 'x', sizeof text);
    found_size = 0;
    assert_int_equal(read_all(&reader, text, sizeof text, 1000), 0);
    assert_int_equal(read_all(&reader, "\n:", 2, 2), 0);
    assert_int_equal(read_all(&reader, text, sizeof text, 1000), 0);
    assert_int_equal(read_all(&reader, "\ndata: a\n\n", 10, 10), 0);
    assert_string_equal(found, "message()a;");
}

/* The memory has room for data alone: other fields need none of it, and a "retry" may have any number of digits. */
static void memory_that_is_full_of_data_has_the_other_fields(void **state)
{
    static char text[ROOM], memory[8];
    bide_http_event_reader reader;
    (void)state;
    int size = snprintf(text, sizeof text, "data: 1234567\nid: 12\nevent: news\nretry: %0300d\n\n", 5);
    bide_http_event_reader_init(&reader, memory, sizeof memory);
    found_size = 0;
    assert_int_equal(read_all(&reader, text, (size_t)size, 5), 0);
    assert_string_equal(found, "news(12)1234567;");
    assert_true(reader.has_retry);
    assert_int_equal(reader.retry, 5);
}

/* An event that was cut does not count: the id is that of the one before. */
static void a_new_response_begins_with_the_last_id(void **state)
{
    char memory[64];
    bide_http_event_reader reader;
    (void)state;
    found_size = 0;
    bide_http_event_reader_init(&reader, memory, sizeof memory);
    assert_int_equal(reader.id.size, 0);
    assert_int_equal(read_all(&reader, "retry: 5\nid: 1\ndata: a\n\nid: 2\nevent: b\ndata: cut", 49, 49), 0);
    assert_true(bide_http_is(reader.id, "1"));
    bide_http_event_reader_restart(&reader);
    assert_true(bide_http_is(reader.id, "1"));
    assert_int_equal(reader.retry, 5);
    assert_int_equal(read_all(&reader, "\xef\xbb\xbf" "data: b\n\n", 12, 12), 0);
    assert_string_equal(found, "message(1)a;message(1)b;");
}

/* ---- Events of the library's server ---- */

static peer one;

struct sends {
    bide_http_exchange exchange;
    bide_http_event_operation send;
};

bide_coroutine(sends_body)
{
    static const bide_http_event first = {.data = {" a\nb\r\n\rid: 9", 12}, .type = {"news", 4}, .id = {"x y", 3},
                                          .comment = {"c\nd", 3}, .has_retry = true, .retry = 77};
    static const bide_http_event other = {.data = {"", 0}};
    bide_begin(sends_body, struct sends * self);
    handled.begun++;
    if (bide_http_start_events(&self->exchange) < 0)
        bide_return(-EINVAL);
    bide_try(bide_http_send_event(&self->send, &self->exchange, &first));
    bide_try(bide_http_send_event(&self->send, &self->exchange, &other));
    bide_finally();
    handled.ended++;
    bide_end();
}

static void events_of_a_server_come_as_they_were(void **state)
{
    bide_http_event_reader reader;
    (void)state;
    peer_init(&one, &(bide_http_options){.handler = {&sends_body, sizeof(struct sends)}});
    assert_int_equal(peer_say(&one, "GET / HTTP/1.0\r\n\r\n"), 0); /* (its body has no chunks) */
    const char *body = strstr(one.output, "\r\n\r\n") + 4;
    read_new(&reader, body, strlen(body), 3, 0);
    assert_string_equal(found, "news(x y) a\nb\n\nid: 9;message(x y);77");
    peer_end(&one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_grammar_is_that_of_the_standard_however_it_is_cut),
        cmocka_unit_test(drawn_texts_are_read_as_by_a_second_reader),
        cmocka_unit_test(what_is_too_long_is_an_error_and_stays_one),
        cmocka_unit_test(memory_that_is_full_of_data_has_the_other_fields),
        cmocka_unit_test(a_new_response_begins_with_the_last_id),
        cmocka_unit_test(events_of_a_server_come_as_they_were),
    };
    return cmocka_run_group_tests_name("http_event_reader", tests, NULL, NULL);
}
