/* cc -std=c11 https-get-body.c $(pkg-config --cflags --libs bide-http bide-tls) -o get */
#include <bide/bide.h>
#include <bide/http_agent_tls.h>
#include <stdio.h>
#include <string.h>

struct get {
    bide_task task;
    const char *url;
    bide_tls_config *config;
    bide_http_agent *agent; /* in a server: one for all requests */
    bide_http_fetch fetch;
    char page[65536];
};

bide_coroutine(get_body)
{
    bide_begin(get_body, struct get * self);
    int status = bide_tls_client_create(&self->config, NULL, NULL); /* the system's authorities */
    if (status < 0 || (status = bide_http_agent_create(&self->agent, NULL)) < 0)
        bide_return(status);
    bide_http_agent_use_tls(self->agent, self->config);
    bide_try(bide_http_get(&self->fetch, self->agent, self->url, self->page, sizeof self->page));
    printf("%d %.*s", self->fetch.response.status, (int)self->fetch.count, self->page);
    bide_finally();
    bide_http_agent_destroy(self->agent);
    bide_tls_config_release(self->config);
    bide_end();
}

int main(int count, char **arguments)
{
    static struct get get;
    get.url = count > 1 ? arguments[1] : "https://example.org/";
    int status = bide_run(bide_task_init(&get.task, &get_body));
    if (status < 0)
        fprintf(stderr, "%s: %s\n", get.url, strerror(-status));
    return status != 0;
}
