/*
 * A custom loop around poll(2) that waits for a pipe, a coroutine's event and a deadline at once. A
 * descriptor is all that the loop knows of coroutines. A thread at the other end of the pipe blocks
 * on an event, as if it were a condition variable.
 */
#include <bide/bide.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

struct conversation {
    int pipe[2];
    bide_event heard;  /* set by the loop after reading the data */
    bide_event agreed; /* set by the other side */
};

/* Writes, blocks until the data was read, then sets an event that the loop polls for. */
static void *other_side(void *argument)
{
    struct conversation *conversation = argument;
    if (write(conversation->pipe[1], "hello", 5) == 5 &&
        bide_event_wait_blocking(&conversation->heard, BIDE_FOREVER) == 0)
        bide_event_set(&conversation->agreed);
    return NULL;
}

enum { PIPE, EVENT, COUNT };

static void run_loop(struct conversation *conversation, bide_pollable *pollable)
{
    struct pollfd polled[COUNT] = {
        [PIPE] = {.fd = conversation->pipe[0], .events = POLLIN},
        [EVENT] = {.fd = bide_pollable_fd(pollable), .events = POLLIN},
    };
    bide_event_waiter wait;
    int events = 0;
    bide_pollable_start(pollable, NULL, bide_event_wait(&wait, &conversation->agreed));
    for (;;) {
        poll(polled, COUNT, bide_pollable_timeout(pollable));
        if ((polled[PIPE].revents & POLLIN) != 0) {
            char text[16] = "";
            if (read(conversation->pipe[0], text, sizeof text - 1) > 0)
                printf("the pipe says: %s\n", text);
            bide_event_set(&conversation->heard);
        }
        int status;
        if (bide_pollable_finish(pollable, &status) != 0)
            continue;
        if (status == -ETIMEDOUT) {
            puts("the event was not set a second time");
            return;
        }
        printf("the event was set: %d\n", ++events);
        /* The same again, but now the other side is silent. */
        bide_event_reset(&conversation->agreed);
        bide_pollable_start(pollable, NULL, bide_event_wait(&wait, &conversation->agreed));
        bide_pollable_set_deadline(pollable, bide_platform.now() + 10000000);
    }
}

int main(void)
{
    struct conversation conversation;
    bide_pollable pollable;
    pthread_t thread;
    bide_event_init(&conversation.heard, false);
    bide_event_init(&conversation.agreed, false);
    if (pipe(conversation.pipe) != 0 || bide_pollable_init(&pollable) != 0 ||
        pthread_create(&thread, NULL, other_side, &conversation) != 0) {
        perror("poll_loop");
        return 1;
    }
    run_loop(&conversation, &pollable);
    pthread_join(thread, NULL);
    bide_pollable_destroy(&pollable);
    bide_event_destroy(&conversation.heard);
    bide_event_destroy(&conversation.agreed);
    close(conversation.pipe[0]);
    close(conversation.pipe[1]);
    return 0;
}
