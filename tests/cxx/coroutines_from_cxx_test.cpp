// Coroutines from C++: a type of one's own with a frame written by hand, created from an allocator,
// started, awaited, sent to another scheduler, and destroyed; over the library in C.

#include "bide/allocator.h"
#include "bide/extend/coroutine_type.h"
#include "bide/create.h"
#include "bide/errors.h"
#include "bide/handle.h"
#include "bide/run_loop.h"
#include "bide/schedule.h"
#include "bide/sync_wait.h"
#include "bide/then.h"

#include <cstdio>

#define CHECK(condition)                                                         \
    do {                                                                         \
        if (!(condition)) {                                                      \
            std::printf("%s:%d: %s is false\n", __FILE__, __LINE__, #condition); \
            return 1;                                                            \
        }                                                                        \
    } while (0)

namespace
{

// Goes to a scheduler, if there is one, and ends with what it was given.
struct traveller {
    bide_frame frame;
    bide_scheduler *to;
    int status;
    bide_schedule_operation schedule;
};

int started, ended, destroyed;

void *traveller_object(bide_frame *frame)
{
    started++;
    return bide_promise(traveller, frame);
}

// Eager.
bide_frame *traveller_begins(bide_frame *frame)
{
    return frame;
}

const bide_coroutine_type traveller_type = {
    "traveller", traveller_object, traveller_begins, nullptr, nullptr, nullptr, nullptr,
    nullptr,     nullptr,          nullptr,          nullptr, nullptr, nullptr, nullptr};
const bide_coroutine_type *const type = &traveller_type;

bide_next traveller_step(bide_frame *frame, unsigned depth);

const bide_coroutine_code code = {traveller_step, "traveller", __FILE__, &type, nullptr};
const bide_point traveller_start = BIDE_POINT_START(&code);
const bide_point traveller_moves = BIDE_POINT(&code, nullptr, 1, BIDE_AT_AWAIT);

bide_next traveller_step(bide_frame *frame, unsigned depth)
{
    traveller *self = bide_promise(traveller, frame);
    if (depth == BIDE_DESTROY_) {
        destroyed++;
        frame->awaiter.ops = &bide_point_finished.ops;
        frame->error = -ECANCELED;
        return bide_next_none();
    }
    if (bide_frame_point(frame) == &traveller_start && self->to != nullptr) {
        frame->awaiter.ops = &traveller_moves.ops;
        return bide_next_frame(bide_frame_await(frame, bide_schedule(&self->schedule, self->to)));
    }
    ended++;
    frame->awaiter.ops = &bide_point_finished.ops;
    frame->error = self->status;
    return bide_next_frame(frame->awaiter.frame);
}

traveller *create(bide_allocator *allocator, bide_scheduler *to, int status)
{
    auto *self =
        static_cast<traveller *>(bide_create(sizeof(traveller), &traveller_start, allocator));
    if (self != nullptr) {
        self->to = to;
        self->status = status;
    }
    return self;
}

int doubled(void *calls, int status)
{
    ++*static_cast<int *>(calls);
    return 2 * status;
}

// An allocator of one's own.
struct counting {
    bide_allocator allocator;
    int held;
};

void *counting_allocate(bide_allocator *allocator, size_t size)
{
    bide_container_of(allocator, counting, allocator)->held++;
    return bide_heap.allocate(&bide_heap, size);
}

void counting_deallocate(bide_allocator *allocator, void *memory, size_t size)
{
    bide_container_of(allocator, counting, allocator)->held--;
    bide_heap.deallocate(&bide_heap, memory, size);
}

int awaited_owned_and_then()
{
    counting memory = {{counting_allocate, counting_deallocate}, 0};
    bide_then_operation then;
    int calls = 0;
    CHECK(bide_sync_wait(bide_owned(create(&memory.allocator, nullptr, -1), &traveller_start)) ==
          -1);
    CHECK(bide_sync_wait(
              bide_then(&then, bide_owned(create(&memory.allocator, nullptr, -2), &traveller_start),
                        doubled, &calls)) == -4);
    CHECK(calls == 1 && memory.held == 0);
    CHECK(bide_sync_wait(bide_owned(nullptr, &traveller_start)) == -ENOMEM);
    return 0;
}

int sent_elsewhere()
{
    alignas(BIDE_ALLOCATOR_ALIGN) unsigned char bytes[1024];
    bide_arena arena;
    bide_run_loop loop;
    bide_schedule_on_operation schedule_on;
    bide_resume_on_operation resume_on;
    bide_arena_init(&arena, bytes, sizeof bytes);
    bide_run_loop_init(&loop);
    CHECK(bide_run_loop_wait(&loop, bide_owned(create(&arena.allocator, &bide_inline_scheduler, -3),
                                               &traveller_start)) == -3);
    CHECK(
        bide_run_loop_wait(&loop, bide_schedule_on(&schedule_on, &bide_inline_scheduler,
                                                   bide_owned(create(&arena.allocator, nullptr, -4),
                                                              &traveller_start))) == -4);
    CHECK(bide_run_loop_wait(&loop, bide_resume_on(&resume_on, &loop.scheduler,
                                                   bide_owned(create(&arena.allocator, nullptr, -5),
                                                              &traveller_start))) == -5);
    CHECK(arena.used == 0);
    return 0;
}

int started_resumed_and_destroyed()
{
    alignas(BIDE_ALLOCATOR_ALIGN) unsigned char bytes[1024];
    bide_pool pool;
    bide_run_loop loop;
    bide_pool_init(&pool, sizeof(traveller) + sizeof(bide_owner), bytes, sizeof bytes);
    bide_run_loop_init(&loop);
    started = ended = destroyed = 0;
    for (int i = 0; i < 2; i++) {
        traveller *self = create(&pool.allocator, &loop.scheduler, 0);
        CHECK(self != nullptr);
        bide_frame *frame = bide_from_promise(self);
        CHECK(bide_start(frame, &traveller_start, &bide_default_context) == self);
        CHECK(!bide_done(frame));
        if (i == 0)
            CHECK(bide_run_loop_run_ready(&loop) == 1);
        else
            bide_destroy(frame);
        CHECK(bide_done(frame) && frame->error == (i == 0 ? 0 : -ECANCELED));
        CHECK(bide_run_loop_run_ready(&loop) == 0);
        bide_free(frame);
    }
    CHECK(started == 2 && ended == 1 && destroyed == 1);
    return 0;
}

} // namespace

int main()
{
    return awaited_owned_and_then() + sent_elsewhere() + started_resumed_and_destroyed();
}
