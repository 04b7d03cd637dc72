/*
 * A custom coroutine type that is never awaited: it starts at once, its frame comes from an
 * allocator and is freed by final_suspend at its end, and a failure goes to the context's
 * `unhandled`.
 */
#include <bide/bide.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- The type ---- */

static bide_frame *detached_initial_suspend(bide_frame *frame)
{
    return frame; /* it runs at once */
}

static bide_frame *detached_final_suspend(bide_frame *frame, const bide_context *context)
{
    if (frame->error < 0 && context->on_unhandled_error != NULL)
        context->on_unhandled_error(context, bide_frame_point(frame)->code, frame->error);
    bide_free(frame);
    return NULL; /* no awaiter */
}

static const bide_coroutine_type detached_type = {
    .name = "detached",
    .initial_suspend = detached_initial_suspend,
    .final_suspend = detached_final_suspend,
};

/* ---- Its use ---- */

/* malloc with a count of live frames. */
struct counting {
    bide_allocator allocator;
    int frames;
};

static void *counting_allocate(bide_allocator *allocator, size_t size)
{
    void *memory = bide_heap.allocate(&bide_heap, size);
    if (memory != NULL)
        bide_container_of(allocator, struct counting, allocator)->frames++;
    return memory;
}

static void counting_deallocate(bide_allocator *allocator, void *memory, size_t size)
{
    bide_container_of(allocator, struct counting, allocator)->frames--;
    bide_heap.deallocate(&bide_heap, memory, size);
}

struct greeter {
    bide_frame frame;
    const char *name; /* NULL is an error */
    bide_event *event;
    bide_event_waiter wait;
};

bide_coroutine_of(detached_type, greeter_body)
{
    bide_begin(greeter_body, struct greeter * self);
    printf("waiting: %s\n", self->name != NULL ? self->name : "nobody");
    bide_await(bide_event_wait(&self->wait, self->event));
    if (self->name == NULL)
        bide_return(-EINVAL);
    printf("hello, %s\n", self->name);
    bide_end();
}

/* Returns false if memory is exhausted. */
static bool greet(struct counting *memory, const bide_context *context, const char *name,
                  bide_event *event)
{
    struct greeter *self = bide_create(sizeof *self, &greeter_body, &memory->allocator);
    if (self == NULL)
        return false;
    self->name = name;
    self->event = event;
    bide_start(&self->frame, &greeter_body, context);
    return true;
}

static void report(const bide_context *context, const bide_coroutine_code *code, int error)
{
    printf("%s: %s failed: %s\n", context->name, code->name,
           error == -EINVAL ? "invalid argument" : "?");
}

int main(void)
{
    struct counting memory = {{counting_allocate, counting_deallocate}, 0};
    const bide_context context = {
        .scheduler = &bide_inline_scheduler, .name = "greetings", .on_unhandled_error = report};
    bide_event event;
    bide_event_init(&event, false);
    if (!greet(&memory, &context, "Ada", &event) || !greet(&memory, &context, NULL, &event) ||
        !greet(&memory, &context, "Grace", &event))
        return EXIT_FAILURE;
    printf("frames: %d\n", memory.frames);
    bide_event_set(&event);
    printf("frames: %d\n", memory.frames);
    return memory.frames == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
