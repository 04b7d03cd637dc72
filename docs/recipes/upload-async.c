/* bidec cc -std=gnu11 upload-async.c $(pkg-config --cflags --libs bide-http) -o upload */
#include <bide/async.h>
#include <bide/bide.h>
#include <bide/http_agent.h>
#include <fcntl.h>
#include <stdio.h>

async int main(int count, char *arguments[])
{
    const char *url = count > 1 ? arguments[1] : "http://localhost/upload";
    bide_descriptor file;
    bide_http_agent *agent = NULL; /* in a server: one for all requests */
    bide_http_fetch fetch;
    try await bide_open(&file, arguments[0], O_RDONLY, 0);
    defer bide_close(&file);
    defer bide_http_agent_destroy(agent);
    int status = bide_http_agent_create(&agent, NULL);
    if (status < 0 || (status = bide_http_fetch_init(&fetch, agent, "PUT", url)) < 0)
        return status;
    defer bide_http_fetch_close(&fetch);
    bide_http_fetch_set_file(&fetch, &file, 0, BIDE_HTTP_UNKNOWN); /* up to its end */
    try await bide_http_fetch_send(&fetch); /* bide_http_fetch_write: a body in pieces */
    printf("%d\n", fetch.response.status);
    return 0;
}
