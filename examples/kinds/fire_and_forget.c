/*
 * A kind of coroutine that is never awaited: ../fire-and-forget in async and await. It starts at once, its
 * frame comes from an allocator and is freed by final_suspend at its end, and a failure goes to the
 * context's `on_unhandled_error`.
 */
#include <bide/async.h>
#include <bide/event.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- The kind ---- */

typedef struct detached {
    bide_frame frame;
} detached;

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

async_kind(detached) int greeter(const char *name, bide_event *event) /* without a name: an error */
{
    printf("waiting: %s\n", name != NULL ? name : "nobody");
    await bide_event_wait(event);
    if (name == NULL)
        return -EINVAL;
    printf("hello, %s\n", name);
    return 0;
}

/* Returns false if memory is exhausted. */
static bool greet(struct counting *memory, const bide_context *context, const char *name,
                  bide_event *event)
{
    async_frame(greeter) *frame = async_create(greeter, &memory->allocator);
    if (frame == NULL)
        return false;
    bide_start_async(async_greeter(frame, name, event), context);
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
