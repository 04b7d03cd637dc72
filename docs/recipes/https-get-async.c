/* bidec cc -std=gnu11 https-get-async.c $(pkg-config --cflags --libs bide-http bide-tls) -o get */
#include <bide/async.h>
#include <bide/bide.h>
#include <bide/http_agent_tls.h>
#include <stdio.h>

async int main(int count, char *arguments[])
{
    const char *url = count > 1 ? arguments[1] : "https://example.org/";
    bide_tls_config *config = NULL;
    bide_http_agent *agent = NULL; /* in a server: one for all requests */
    bide_http_fetch fetch;
    char page[65536];
    defer bide_tls_config_release(config);
    defer bide_http_agent_destroy(agent);
    int status = bide_tls_client_create(&config, NULL, NULL); /* the system's authorities */
    if (status < 0 || (status = bide_http_agent_create(&agent, NULL)) < 0)
        return status;
    bide_http_agent_use_tls(agent, config);
    try await bide_http_get(&fetch, agent, url, page, sizeof page);
    printf("%d %.*s", fetch.response.status, (int)fetch.count, page);
    return 0;
}
