/*
 * The HTTP/2 client in memory, under a test loop with virtual time: against the library's server, whose handler is
 * http_peer_body (http_peer.h), or against a peer that sends bytes of a script.
 */
#ifndef BIDE_TESTS_HTTP2_CLIENT_PEER_H
#define BIDE_TESTS_HTTP2_CLIENT_PEER_H

#include "../http/http_peer.h"

#include <bide/http2.h>
#include <bide/http2_client.h>
#include <bide/http_agent_http2.h>

enum { JOBS = 128, ANSWER = 2048, PEER_STEPS = 8 };

/* A request, and what came of it. */
typedef struct job {
    bide_task task;
    bide_branch branch;
    struct talk3 *talk;
    bide_http2_request request;

    const bide_point *does;    /* NULL: job_body */
    const char *method, *path; /* NULL: GET */
    const char *const (*fields)[2]; /* up to a NULL */
    const char *body; /* NULL: none */
    size_t body_size;
    size_t piece;     /* the body is written in pieces of that size; 0: it is set */
    bool is_unknown;  /* its length is not said */
    bool continues;   /* waits for 100 */
    const char *trailer;
    bool reads_not;   /* the response */
    size_t reads;     /* bytes at a time. 0: 512 */
    uint64_t begins_at;
    uint64_t deadline; /* of each operation; 0: none */
    void (*on_informational)(bide_http2_request *request);

    int status; /* of its end */
    int code;   /* of the response */
    size_t size;
    size_t sent;
    bool is_wrong; /* the response's body is not the request's */
    bool continued;
    char answer[ANSWER];
    char sum[16];
    char type[64];
    unsigned ends;
    bide_sleep sleep;
    bide_with_deadline_operation limited;
    char buffer[4096];
} job;

/* Bytes that the scripted peer sends, once it has seen so many heads of requests. */
typedef struct step {
    unsigned after_heads;
    const char *data;
    size_t size;
    uint64_t pause; /* before it */
    unsigned times; /* 0: 1 */
} step;

typedef struct talk3 {
    bide_sim_loop loop;
    bide_sim_record_ record;
    uint64_t seed; /* 0: no random choices */
    bide_http_server server;
    bide_http2 http2;
    bide_http_connection connection;
    char *memory;
    bide_memory_pipe to_server, from_server;
    bide_memory_end server_end, client_end;
    char to_memory[PEER_PIPE], from_memory[PEER_PIPE];
    size_t pipe; /* bytes of a pipe. 0: all */

    bide_http2_client_options options;
    bide_http2_client client;
    int run_status;
    job jobs[JOBS];
    size_t job_count;
    unsigned order[JOBS]; /* in which they got their response */
    size_t answered;
    uint64_t began, took;
    uint64_t shut_down_at;
    uint64_t drain_at;   /* the server's */
    uint64_t destroy_at; /* the runner's */
    bool destroys_running; /* not before it has begun */
    uint64_t doubt_at;
    uint64_t halt_at; /* the process is halted, for `halt` */
    uint64_t halt;
    void (*on_answer)(void *client); /* its own, of the client; or NULL */
    bool is_scripted;
    bool stays;         /* the client is not shut down when the jobs have ended */

    /* the scripted peer: */
    step steps[PEER_STEPS];
    size_t step_count;
    bool closes; /* after the last step */
    bool is_deaf; /* reads nothing after the last step */
    size_t skipped;
    unsigned char head[9];
    size_t head_size, left;
    unsigned heads, pings, pongs, resets, goaways, updates, ends;
    unsigned char request[256]; /* the compressed fields of the last head */
    size_t request_size;
    uint32_t reset_code, goaway_code;
    size_t data; /* bytes of DATA */
    uint64_t given; /* to the connection's window */
    unsigned char payload[8];
    size_t payload_size;

    struct talk3_task {
        bide_task task;
        struct talk3 *talk;
        bide_branch branch;
        bide_sleep sleep;
        bide_stream_operation operation;
        bide_auto_event_waiter wait;
        bide_scope scope;
        unsigned i, n;
        int status;
        char buffer[4096];
    } main, serving, running, watching, listening, speaking;
    bide_auto_event heard;
    bide_scope scope, jobs_scope, running_scope;
} talk3;

static inline bide_awaiter *job_limited(job *job, bide_awaiter *awaiter)
{
    return job->deadline == 0 ? awaiter : bide_with_deadline(&job->limited, job->talk->began + job->deadline, awaiter);
}

static inline int job_begin(job *job)
{
    const char *method = job->method != NULL ? job->method : job->body != NULL ? "POST" : "GET";
    int status = bide_http2_request_init(&job->request, &job->talk->client, method, job->path, "example.org");
    job->request.on_informational = job->on_informational;
    for (size_t i = 0; status == 0 && job->fields != NULL && job->fields[i][0] != NULL; i++)
        status = bide_http2_request_add(&job->request, job->fields[i][0], job->fields[i][1]);
    if (status == 0 && job->body != NULL && job->piece == 0 && !job->continues)
        status = bide_http2_request_set_body(&job->request, job->body, job->body_size);
    else if (status == 0 && job->body != NULL)
        status = bide_http2_request_finish_head(&job->request, job->is_unknown ? BIDE_HTTP_UNKNOWN : job->body_size);
    return status;
}

static inline void job_keep(job *job, size_t count)
{
    for (size_t i = 0; i < count; i++, job->size++) {
        if (job->size < ANSWER - 1)
            job->answer[job->size] = job->buffer[i];
        if (job->body != NULL && (job->size >= job->body_size || job->body[job->size] != job->buffer[i]))
            job->is_wrong = true;
    }
}

static inline void job_keep_text(char *to, size_t size, bide_slice text)
{
    if (text.data != NULL && text.size < size)
        memcpy(to, text.data, text.size);
}

static inline size_t job_next(const job *job)
{
    size_t left = job->body_size - job->sent;
    return job->piece != 0 && job->piece < left ? job->piece : left;
}

bide_coroutine(job_body)
{
    bide_begin(job_body, job * self);
    self->status = -EINPROGRESS;
    if (self->begins_at != 0)
        bide_try(bide_sleep_for(&self->sleep, self->begins_at));
    self->status = job_begin(self);
    if (self->status < 0)
        bide_return(0);
    if (self->continues) {
        bide_await_status(self->status, job_limited(self, bide_http2_request_continue(&self->request)));
        if (self->status < 0)
            bide_return(0);
        self->continued = self->request.continues;
    }
    if (self->body != NULL && (self->piece != 0 || self->continued)) {
        while (self->sent != self->body_size) {
            bide_await_status(self->status,
                              job_limited(self, bide_http2_request_write(&self->request, self->body + self->sent,
                                                                         job_next(self))));
            if (self->status < 0)
                break;
            self->sent += job_next(self);
        }
        if (self->trailer != NULL)
            (void)bide_http2_request_add_trailer(&self->request, "X-Trailer", self->trailer);
        if (self->status < 0 && self->status != -EPIPE)
            bide_return(0);
    }
    bide_await_status(self->status, job_limited(self, bide_http2_request_recv(&self->request)));
    if (self->status < 0)
        bide_return(0);
    self->talk->order[self->talk->answered++] = (unsigned)(self - self->talk->jobs);
    self->code = self->request.response.status;
    job_keep_text(self->type, sizeof self->type, bide_http2_request_field(&self->request, "content-type"));
    while (!self->reads_not) {
        bide_await_status(self->status,
                          job_limited(self, bide_http2_request_read(&self->request, self->buffer,
                                                                    self->reads != 0 ? self->reads : 512)));
        if (self->status < 0)
            bide_return(0);
        if (self->request.count == 0)
            break;
        job_keep(self, self->request.count);
    }
    if (self->reads_not)
        bide_await(bide_sleep_for(&self->sleep, 5 * SECOND));
    job_keep_text(self->sum, sizeof self->sum, bide_http2_request_trailer(&self->request, "X-Sum"));
    bide_finally();
    self->ends++;
    bide_http2_request_close(&self->request);
    bide_end();
}

/* ---- Peers ---- */

bide_coroutine(talk3_serve)
{
    bide_begin(talk3_serve, struct talk3_task * self);
    bide_await_status(self->status, bide_http2_serve(&self->talk->connection, &self->talk->http2,
                                                     bide_memory_stream(&self->talk->server_end), self->talk->memory, "h2"));
    bide_finally();
    bide_memory_pipe_destroy(&self->talk->from_server);
    bide_memory_pipe_reject(&self->talk->to_server);
    bide_end();
}

static inline uint32_t talk3_number(const unsigned char *data)
{
    return (uint32_t)data[0] << 24 | (uint32_t)data[1] << 16 | (uint32_t)data[2] << 8 | data[3];
}

/* A whole frame has come; its first bytes are in `payload`. */
static inline void talk3_frame(talk3 *talk)
{
    bool is_ack = (talk->head[4] & 1) != 0;
    talk->ends += talk->head[3] <= 1 && (talk->head[4] & 1) != 0;
    switch (talk->head[3]) {
    case 1: talk->heads++; break;
    case 3: talk->resets++; talk->reset_code = talk3_number(talk->payload); break;
    case 6: talk->pings += !is_ack; talk->pongs += is_ack; break;
    case 7: talk->goaways++; talk->goaway_code = talk3_number(talk->payload + 4); break;
    case 8:
        talk->updates++;
        if (talk3_number(talk->head + 5) == 0)
            talk->given += talk3_number(talk->payload);
        break;
    default: break;
    }
    bide_auto_event_set(&talk->heard);
}

/* Parses what the client has sent, behind its preface. */
static inline void talk3_hear(talk3 *talk, const unsigned char *data, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (talk->skipped < 24) {
            talk->skipped++;
            continue;
        }
        if (talk->head_size < 9) {
            talk->head[talk->head_size++] = data[i];
            talk->left = (size_t)talk->head[0] << 16 | (size_t)talk->head[1] << 8 | talk->head[2];
            talk->payload_size = 0;
        } else {
            talk->left--;
            talk->data += talk->head[3] == 0;
            if (talk->head[3] == 1 && talk->payload_size == 0)
                talk->request_size = 0;
            if (talk->head[3] == 1 && talk->request_size < sizeof talk->request)
                talk->request[talk->request_size++] = data[i];
            if (talk->payload_size < sizeof talk->payload)
                talk->payload[talk->payload_size++] = data[i];
        }
        if (talk->head_size == 9 && talk->left == 0) {
            talk3_frame(talk);
            talk->head_size = 0;
        }
    }
}

bide_coroutine(talk3_listen)
{
    bide_begin(talk3_listen, struct talk3_task * self);
    for (;;) {
        bide_await_status(self->status, bide_stream_read(&self->operation, bide_memory_stream(&self->talk->server_end),
                                                         self->buffer, sizeof self->buffer));
        size_t size = bide_stream_count(&self->operation, bide_memory_stream(&self->talk->server_end));
        if (self->status < 0 || size == 0)
            break;
        talk3_hear(self->talk, (const unsigned char *)self->buffer, size);
    }
    bide_end();
}

bide_coroutine(talk3_speak)
{
    bide_begin(talk3_speak, struct talk3_task * self);
    for (self->i = 0; self->i < self->talk->step_count; self->i++) {
        while (self->talk->heads < self->talk->steps[self->i].after_heads)
            bide_try(bide_auto_event_wait(&self->wait, &self->talk->heard));
        if (self->talk->steps[self->i].pause != 0)
            bide_try(bide_sleep_for(&self->sleep, self->talk->steps[self->i].pause));
        for (self->n = 0; self->n == 0 || self->n < self->talk->steps[self->i].times; self->n++) {
            bide_await_status(self->status,
                              bide_stream_write(&self->operation, bide_memory_stream(&self->talk->server_end),
                                                self->talk->steps[self->i].data, self->talk->steps[self->i].size));
            if (self->status < 0)
                bide_return(0);
        }
    }
    if (self->talk->closes)
        bide_memory_pipe_destroy(&self->talk->from_server);
    bide_end();
}

bide_coroutine(talk3_play)
{
    bide_begin(talk3_play, struct talk3_task * self);
    bide_scope_init(&self->scope, bide_this_frame());
    bide_scope_spawn(&self->scope, &self->talk->speaking.branch, bide_task_init(&self->talk->speaking.task, &talk3_speak));
    bide_scope_spawn(&self->scope, &self->talk->listening.branch, bide_task_init(&self->talk->listening.task, &talk3_listen));
    bide_await(bide_scope_join(&self->scope));
    bide_finally();
    bide_scope_destroy(&self->scope);
    bide_memory_pipe_destroy(&self->talk->from_server);
    bide_memory_pipe_reject(&self->talk->to_server);
    bide_end();
}

/* ---- The conversation ---- */

bide_coroutine(talk3_run_client)
{
    bide_begin(talk3_run_client, struct talk3_task * self);
    bide_await_status(self->talk->run_status, bide_http2_client_run(&self->talk->client));
    self->talk->took = bide_now(bide_this_context()) - self->talk->began;
    bide_finally();
    bide_memory_pipe_destroy(&self->talk->to_server);
    bide_memory_pipe_reject(&self->talk->from_server);
    bide_end();
}

bide_coroutine(talk3_act)
{
    bide_begin(talk3_act, struct talk3_task * self);
    if (self->talk->shut_down_at != 0) {
        bide_await(bide_sleep_for(&self->sleep, self->talk->shut_down_at));
        bide_http2_client_shut_down(&self->talk->client);
    }
    if (self->talk->doubt_at != 0) {
        bide_await(bide_sleep_for(&self->sleep, self->talk->doubt_at));
        bide_http_agent_http2_doubt_(&self->talk->client);
    }
    if (self->talk->halt_at != 0) {
        bide_await(bide_sleep_for(&self->sleep, self->talk->halt_at));
        self->talk->loop.now += self->talk->halt;
    }
    if (self->talk->drain_at != 0) {
        bide_await(bide_sleep_for(&self->sleep, self->talk->drain_at));
        bide_http_server_shut_down(&self->talk->server, BIDE_FOREVER);
    }
    if (self->talk->destroy_at != 0) {
        bide_await(bide_sleep_for(&self->sleep, self->talk->destroy_at));
        while (self->talk->destroys_running && !self->talk->client.is_running && !self->talk->client.has_ended)
            bide_await(bide_sleep_for(&self->sleep, 1));
        bide_scope_destroy(&self->talk->running_scope);
        bide_memory_pipe_destroy(&self->talk->to_server); /* (the runner may not have begun) */
        bide_memory_pipe_reject(&self->talk->from_server);
    }
    bide_end();
}

bide_coroutine(talk3_main)
{
    bide_begin(talk3_main, struct talk3_task * self);
    self->talk->began = bide_now(bide_this_context());
    bide_scope_init(&self->talk->scope, bide_this_frame());
    bide_scope_init(&self->talk->running_scope, bide_this_frame());
    bide_scope_init(&self->talk->jobs_scope, bide_this_frame());
    bide_scope_spawn(&self->talk->scope, &self->talk->serving.branch,
                     bide_task_init(&self->talk->serving.task, self->talk->is_scripted ? &talk3_play : &talk3_serve));
    bide_scope_spawn(&self->talk->running_scope, &self->talk->running.branch,
                     bide_task_init(&self->talk->running.task, &talk3_run_client));
    bide_scope_spawn(&self->talk->scope, &self->talk->watching.branch,
                     bide_task_init(&self->talk->watching.task, &talk3_act));
    for (size_t i = 0; i < self->talk->job_count; i++)
        bide_scope_spawn(&self->talk->jobs_scope, &self->talk->jobs[i].branch,
                         bide_task_init(&self->talk->jobs[i].task,
                                        self->talk->jobs[i].does != NULL ? self->talk->jobs[i].does : &job_body));
    bide_await(bide_scope_join(&self->talk->jobs_scope));
    if (!self->talk->stays)
        bide_http2_client_shut_down(&self->talk->client);
    if (self->talk->destroy_at == 0)
        bide_await(bide_scope_join(&self->talk->running_scope));
    bide_await(bide_scope_join(&self->talk->scope));
    bide_finally();
    bide_scope_destroy(&self->talk->jobs_scope);
    bide_scope_destroy(&self->talk->running_scope);
    bide_scope_destroy(&self->talk->scope);
    bide_end();
}

static inline void talk3_init(talk3 *talk)
{
    static const bide_http2_options options2 = {0};
    bide_http_options options = {.handler = {&http_peer_body, sizeof(struct peer_handler)},
                                 .clock = peer_clock,
                                 .header_timeout = BIDE_FOREVER,
                                 .first_byte_timeout = BIDE_FOREVER,
                                 .keepalive_timeout = BIDE_FOREVER,
                                 .body_idle_timeout = BIDE_FOREVER,
                                 .request_timeout = BIDE_FOREVER};
    memset(talk, 0, sizeof *talk);
    assert_int_equal(bide_http_server_init(&talk->server, &options), 0);
    assert_int_equal(bide_http2_init(&talk->http2, &talk->server, &options2), 0);
    talk->memory = malloc(bide_http_memory_size(&talk->server));
    assert_non_null(talk->memory);
}

static inline void talk3_end(talk3 *talk)
{
    free(talk->memory);
}

static inline job *talk3_job(talk3 *talk, const char *path)
{
    assert_true(talk->job_count < JOBS);
    job *job = &talk->jobs[talk->job_count++];
    memset(job, 0, sizeof *job);
    job->path = path;
    return job;
}

static inline job *talk3_post(talk3 *talk, const char *path, const char *body, size_t size)
{
    job *job = talk3_job(talk, path);
    job->body = body;
    job->body_size = size;
    return job;
}

static inline void talk3_step(talk3 *talk, unsigned after_heads, const char *data, size_t size)
{
    assert_true(talk->step_count < PEER_STEPS);
    talk->is_scripted = true;
    talk->steps[talk->step_count++] = (step){after_heads, data, size, 0, 0};
}

/* Runs the conversation. Each request has ended once, and the client has released everything. Returns its end. */
static inline int talk3_run(talk3 *talk)
{
    memset(&handled, 0, sizeof handled);
    bide_sim_loop_init(&talk->loop, talk->seed);
    if (talk->seed == 0) {
        static const uint16_t plain = 0;
        talk->record = (bide_sim_record_){.given = &plain};
        talk->loop.record = &talk->record;
    }
    size_t room = talk->pipe != 0 ? talk->pipe : PEER_PIPE;
    bide_memory_pipe_init(&talk->to_server, talk->to_memory, room);
    bide_memory_pipe_init(&talk->from_server, talk->from_memory, room);
    talk->server_end = (bide_memory_end){&talk->to_server, &talk->from_server};
    talk->client_end = (bide_memory_end){&talk->from_server, &talk->to_server};
    talk->main.talk = talk->serving.talk = talk->running.talk = talk->watching.talk = talk;
    talk->listening.talk = talk->speaking.talk = talk;
    talk->server.is_draining = false;
    talk->skipped = talk->head_size = talk->left = talk->data = talk->payload_size = 0;
    talk->heads = talk->pings = talk->pongs = talk->resets = talk->goaways = talk->updates = talk->ends = 0;
    talk->reset_code = talk->goaway_code = UINT32_MAX;
    talk->given = 0;
    talk->answered = 0;
    talk->run_status = -EINPROGRESS;
    bide_auto_event_init(&talk->heard, false);
    for (size_t i = 0; i < talk->job_count; i++) {
        job *job = &talk->jobs[i];
        job->talk = talk;
        job->ends = 0;
        job->code = 0;
        job->size = job->sent = 0;
        job->is_wrong = job->continued = false;
        memset(&job->request, 0, sizeof job->request);
        memset(job->answer, 0, sizeof job->answer);
        memset(job->sum, 0, sizeof job->sum);
        memset(job->type, 0, sizeof job->type);
    }
    assert_int_equal(bide_http2_client_init(&talk->client, bide_memory_stream(&talk->client_end), &talk->options), 0);
    talk->client.on_answer = talk->on_answer;
    talk->client.on_answer_argument = &talk->client;
    int status = bide_sim_loop_wait(&talk->loop, bide_task_init(&talk->main.task, &talk3_main));
    assert_int_equal(status, 0);
    assert_int_equal(talk->client.open, 0);
    assert_int_equal(talk->client.unread, 0);
    assert_int_equal(talk->client.active.count, 0);
    assert_int_equal(talk->client.waiting.count, 0);
    bide_http2_client_destroy(&talk->client);
    for (size_t i = 0; i < talk->job_count; i++)
        assert_int_equal(talk->jobs[i].ends, 1);
    assert_int_equal(handled.begun, handled.ended);
    if (!talk->is_scripted) {
        assert_int_equal(talk->http2.stats.memory, 0);
        assert_int_equal(talk->http2.stats.live, 0);
    }
    return talk->run_status;
}

#endif
