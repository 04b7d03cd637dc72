/* cc -std=c11 upload-body.c $(pkg-config --cflags --libs bide-http) -o upload */
#include <bide/bide.h>
#include <bide/http_agent.h>
#include <fcntl.h>
#include <stdio.h>

struct upload {
    bide_task task;
    const char *path, *url;
    bide_file_operation open;
    bide_descriptor file;
    bide_http_agent *agent; /* in a server: one for all requests */
    bide_http_fetch fetch;
};

bide_coroutine(upload_body)
{
    bide_begin(upload_body, struct upload * self);
    bide_descriptor_init_closed(&self->file);
    bide_try(bide_open(&self->open, &self->file, self->path, O_RDONLY, 0));
    int status = bide_http_agent_create(&self->agent, NULL);
    if (status < 0 || (status = bide_http_fetch_init(&self->fetch, self->agent, "PUT", self->url)) < 0)
        bide_return(status);
    bide_http_fetch_set_file(&self->fetch, &self->file, 0, BIDE_HTTP_UNKNOWN); /* up to its end */
    bide_try(bide_http_fetch_send(&self->fetch)); /* bide_http_fetch_write: a body in pieces */
    printf("%d\n", self->fetch.response.status);
    bide_finally();
    bide_http_fetch_close(&self->fetch);
    bide_http_agent_destroy(self->agent);
    bide_close(&self->file);
    bide_end();
}

int main(int count, char **arguments)
{
    static struct upload upload;
    upload.path = arguments[0];
    upload.url = count > 1 ? arguments[1] : "http://localhost/upload";
    return bide_run(bide_task_init(&upload.task, &upload_body)) != 0;
}
