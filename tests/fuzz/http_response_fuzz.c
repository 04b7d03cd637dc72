/* Heads of responses: the parser of the client against a second one. */
#include "http_head.h"

#include <errno.h>

const unsigned fuzz_executions = 15000;
const char *const fuzz_words[] = {
    "Content-Length: 5\r\n", "Content-Length: 5, 5\r\n", "Transfer-Encoding: chunked\r\n", "Transfer-Encoding: gzip\r\n",
    "Transfer-Encoding: gzip, chunked\r\n", "Transfer-Encoding: chunked, gzip\r\n", "Connection: close\r\n", "\r\n\r\n",
    "\r\n ", "HTTP/1.0", "HTTP/1.1 ", "204", "Host: a b\r\n", "Expect: x\r\n", "Upgrade: x\r\n", ",", "chunked", "a: b\r\n",
    NULL};

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
    int status = bide_http_parse_response_(&head, copy, (size_t)end);
    second_response(&second, copy, (size_t)end);
    FUZZ_REQUIRE(status == 0 || status == -EBADMSG || status == -EMSGSIZE);
    FUZZ_REQUIRE((status != 0) == second.is_wrong);
    if (status == 0) {
        head_compare(&second, &head);
        FUZZ_REQUIRE(head.status == second.status && head.has_other_coding == second.has_other_coding);
    }
    free(copy);
    return 0;
}
