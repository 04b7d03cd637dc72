/* Heads of requests: the end of a head, however it arrives; and the parser against a second one. */
#include "http_head.h"

const unsigned fuzz_executions = 15000;
const char *const fuzz_words[] = {
    "Host: a\r\n", "Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n", "Transfer-Encoding: gzip, chunked\r\n",
    "Connection: close, upgrade\r\n", "Expect: 100-continue\r\n", "Upgrade: websocket\r\n", "\r\n\r\n", "\r\n ", "HTTP/1.0",
    "HTTP/1.1", "CONNECT ", "OPTIONS * ", "HEAD ", "http://", "https://", "[::1]", "[v1.a:b]", "[1:2:3:4:5:6:1.2.3.4]", ":80",
    "%41", "%zz", ",", ", ,", "chunked", "a: b\r\n", NULL};

static bool is_common(struct piece method)
{
    static const char *const names[] = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (method.size == strlen(names[i]) && memcmp(method.at, names[i], method.size) == 0)
            return true;
    return false;
}

static void split_query(struct second_head *head, struct piece text)
{
    const char *mark = text.size != 0 ? memchr(text.at, '?', text.size) : NULL;
    head->path = text;
    if (mark != NULL) {
        head->path.size = (size_t)(mark - text.at);
        head->query = (struct piece){mark + 1, text.size - head->path.size - 1};
    }
}

/* The four forms of a target. Returns the authority. */
static struct piece split_target(struct second_head *head)
{
    struct piece target = head->target, authority = {NULL, 0};
    size_t scheme = target.size >= 7 && strncasecmp(target.at, "http://", 7) == 0    ? 7
                    : target.size >= 8 && strncasecmp(target.at, "https://", 8) == 0 ? 8
                                                                                      : 0;
    if (head->method.size == 7 && memcmp(head->method.at, "CONNECT", 7) == 0) {
        size_t host = uri_host(target.at, target.size);
        long port = host != 0 ? uri_port(target.at, target.size, host) : -1;
        if (port < 0 || port > 65535)
            head->is_wrong = true;
        return target;
    }
    if (target.at[0] == '/' || (target.size == 1 && target.at[0] == '*' && head->method.size == 7 &&
                                memcmp(head->method.at, "OPTIONS", 7) == 0)) {
        split_query(head, target);
        return authority;
    }
    if (scheme == 0) {
        head->is_wrong = true;
        return authority;
    }
    authority.at = target.at + scheme;
    while (scheme + authority.size < target.size && authority.at[authority.size] != '/' &&
           authority.at[authority.size] != '?')
        authority.size++;
    size_t host = uri_host(authority.at, authority.size);
    if (host == 0 || uri_port(authority.at, authority.size, host) > 65535)
        head->is_wrong = true;
    split_query(head, (struct piece){authority.at + authority.size, target.size - scheme - authority.size});
    return authority;
}

static void second_request(struct second_head *head, const char *data, size_t size)
{
    struct piece rest = {data, size}, line;
    memset(head, 0, sizeof *head);
    if (!head_line(&rest, &line)) {
        head->is_wrong = true;
        return;
    }
    const char *one = memchr(line.at, ' ', line.size);
    const char *two = one != NULL ? memchr(one + 1, ' ', line.size - (size_t)(one + 1 - line.at)) : NULL;
    if (two == NULL || two == one + 1 || line.size - (size_t)(two - line.at) != 9 || memcmp(two, " HTTP/1.", 8) != 0 ||
        (two[8] != '0' && two[8] != '1')) {
        head->is_wrong = true;
        return;
    }
    head->method = (struct piece){line.at, (size_t)(one - line.at)};
    head->target = (struct piece){one + 1, (size_t)(two - one) - 1};
    head->minor = two[8] - '0';
    if (!head_is_token(head->method) || head->target.size > HEAD_TARGET)
        head->is_wrong = true;
    for (size_t i = 0; i < head->target.size; i++)
        if (head->target.at[i] <= ' ' || head->target.at[i] > '~' || head->target.at[i] == '#')
            head->is_wrong = true;
    struct piece authority = split_target(head);
    if (head->is_wrong)
        return;
    head_fields(head, rest, true);
    head_check_framing(head);
    if (head->hosts > 1 || (head->hosts == 0 && head->minor == 1))
        head->is_wrong = true;
    if (authority.at != NULL)
        head->host = authority;
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    const char *data = (const char *)input;
    bide_http_field fields[HEAD_FIELDS];
    http_head head = {.fields = fields, .max_fields = HEAD_FIELDS, .max_target = HEAD_TARGET};
    struct second_head second;
    ptrdiff_t end = head_end(data, size);
    if (end <= 0)
        return 0;
    char *copy = fuzz_copy(data, (size_t)end);
    int status = bide_http_parse_request_(&head, copy, (size_t)end);
    second_request(&second, copy, (size_t)end);
    FUZZ_REQUIRE(status == 0 || status == 400 || status == 414 || status == 417 || status == 431 || status == 501 ||
                 status == 505);
    bool is_unknown = status == 501 && !is_common(second.method);
    if (!is_unknown)
        FUZZ_REQUIRE((status != 0) == second.is_wrong);
    if (status == 0) {
        head_compare(&second, &head);
        FUZZ_REQUIRE(!head.has_other_coding && head.expects == second.expects);
        FUZZ_REQUIRE(head_same(second.method, head.method_name) && head_same(second.target, head.target));
        FUZZ_REQUIRE(head_same(second.query, head.query) && head_same(second.host, head.host));
        if (second.path.size != 0 || head.method == BIDE_HTTP_CONNECT)
            FUZZ_REQUIRE(head_same(second.path, head.path));
        else
            FUZZ_REQUIRE(head.path.size == 1 && head.path.data[0] == '/');
    }
    free(copy);
    return 0;
}
