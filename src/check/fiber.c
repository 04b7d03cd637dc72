/*
 * A stack is entered once, by swapcontext; after that setjmp and longjmp do, which need no system
 * call.
 */
#define _GNU_SOURCE
/* Fortified versions of longjmp reject a jump to another stack. */
#undef _FORTIFY_SOURCE
#include "fiber.h"

#include "heap.h"
#include "sanitizer.h"

#include "bide/platform.h"

#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#ifdef CHECKER_HAS_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
static const void *main_stack;
static size_t main_stack_size;
static void *main_fake_stack;
#define LEAVING(save, stack, size) __sanitizer_start_switch_fiber(save, stack, size)
#define ARRIVED(save, stack, size) __sanitizer_finish_switch_fiber(save, stack, size)
#else
#define LEAVING(save, stack, size) ((void)0)
#define ARRIVED(save, stack, size) ((void)0)
#endif

/*
 * The linker's names for the ends of the section of bide's thread-local variables. A program may have
 * none.
 */
extern char __start_bide_thread_local[] __attribute__((weak));
extern char __stop_bide_thread_local[] __attribute__((weak));

fiber_region fiber_regions[FIBER_REGIONS];
static char *image; /* the initial values of the thread-local variables */
static size_t image_size;

static jmp_buf scheduler;
static fiber *running_fiber;
static const fiber_moment *next_moment; /* the running fiber is to be set back to it */

static void load_thread_local(const char *from)
{
    for (unsigned i = 0; i < FIBER_REGIONS; from += fiber_regions[i++].size)
        memcpy(fiber_regions[i].begin, from, fiber_regions[i].size);
}

static void save_thread_local(char *to)
{
    for (unsigned i = 0; i < FIBER_REGIONS; to += fiber_regions[i++].size)
        memcpy(to, fiber_regions[i].begin, fiber_regions[i].size);
}

#ifndef CHECKER_HAS_ASAN
/* The first object is the program. */
static int find_program_region(struct dl_phdr_info *info, size_t size, void *region)
{
    fiber_region *found = region;
    (void)size;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_TLS && info->dlpi_tls_data != NULL)
            *found = (fiber_region){info->dlpi_tls_data, info->dlpi_phdr[i].p_memsz};
    }
    return 1;
}
#endif

/* (The runtime of AddressSanitizer may be in the program, and has variables there.) */
static void find_regions(void)
{
    static char none;
    fiber_regions[0] = fiber_regions[1] = (fiber_region){&none, 0};
    if (__start_bide_thread_local != NULL)
        fiber_regions[0] =
            (fiber_region){__start_bide_thread_local, (uintptr_t)__stop_bide_thread_local -
                                                          (uintptr_t)__start_bide_thread_local};
#ifndef CHECKER_HAS_ASAN
    dl_iterate_phdr(find_program_region, &fiber_regions[1]);
#endif
    image_size = fiber_regions[0].size + fiber_regions[1].size;
}

static _Noreturn void go_outside(void)
{
    LEAVING(NULL, main_stack, main_stack_size);
    _longjmp(scheduler, 1);
}

static void main_loop(void)
{
    fiber *self = running_fiber;
    ARRIVED(NULL, &main_stack, &main_stack_size);
    for (;;) {
        if (_setjmp(self->top) == 0)
            go_outside();
        ARRIVED(NULL, &main_stack, &main_stack_size);
        self->function(self->argument);
    }
}

void fiber_create(fiber *f, void *stack, size_t stack_size)
{
    static ucontext_t back;
    ucontext_t context;
    if (image == NULL) {
        find_regions();
        image = malloc(image_size);
        if (image == NULL)
            abort();
        save_thread_local(image);
    }
    f->thread_local = malloc(image_size);
    f->stack = stack;
    f->stack_size = stack_size;
    if (f->thread_local == NULL || getcontext(&context) != 0) {
        fputs("bide_check: cannot make a stack\n", stderr);
        abort();
    }
    context.uc_stack.ss_sp = stack;
    context.uc_stack.ss_size = stack_size;
    context.uc_link = NULL;
    makecontext(&context, main_loop, 0);
    running_fiber = f;
    if (_setjmp(scheduler) == 0) {
        LEAVING(&main_fake_stack, stack, stack_size);
        swapcontext(&back, &context);
    }
    ARRIVED(main_fake_stack, NULL, NULL);
    running_fiber = NULL;
}

static _Noreturn void go_to_moment(fiber *f)
{
    const fiber_moment *m = next_moment;
    next_moment = NULL;
    size_t frames = m->size - image_size;
    load_thread_local(m->bytes);
    memcpy((char *)f->stack + f->stack_size - frames, m->bytes + image_size, frames);
    _longjmp(((fiber_moment *)(uintptr_t)m)->here, 1);
}

static void fiber_enter(fiber *f, jmp_buf where)
{
    bide_assert(running_fiber == NULL);
    running_fiber = f;
    if (_setjmp(scheduler) == 0) {
        LEAVING(&main_fake_stack, f->stack, f->stack_size);
        _longjmp(where, 1);
    }
    ARRIVED(main_fake_stack, NULL, NULL);
    if (next_moment != NULL)
        go_to_moment(f);
    save_thread_local(f->thread_local);
    load_thread_local(image);
    running_fiber = NULL;
}

void fiber_start(fiber *f, void (*function)(void *argument), void *argument)
{
    f->function = function;
    f->argument = argument;
    load_thread_local(image);
#ifdef CHECKER_HAS_ASAN
    /* The abandoned frames of an earlier start are still poisoned. */
    __asan_unpoison_memory_region(f->stack, f->stack_size);
#endif
    fiber_enter(f, f->top);
}

void fiber_resume(fiber *f)
{
    load_thread_local(f->thread_local);
    fiber_enter(f, f->here);
}

void fiber_resize(fiber *f, void *stack, size_t stack_size)
{
    f->stack = stack;
    f->stack_size = stack_size;
}

void fiber_abandon(void)
{
    go_outside();
}

void fiber_leave(void)
{
    fiber *self = running_fiber;
    bide_assert(self != NULL);
    if (_setjmp(self->here) == 0)
        go_outside();
    ARRIVED(NULL, &main_stack, &main_stack_size);
}

/* ---- Moments ---- */

bool fiber_can_be_set_back(void)
{
#ifdef CHECKER_HAS_ASAN
    return false;
#else
    return true;
#endif
}

/* Copies the frames of the callers. */
static __attribute__((noinline)) void copy_frames(fiber_moment *m)
{
    const fiber *f = running_fiber;
    const char *low = __builtin_frame_address(0), *end = (char *)f->stack + f->stack_size;
    m->size = image_size + (size_t)(end - low);
    if (m->size > m->capacity) {
        m->capacity = 2 * m->size;
        m->bytes = heap_own_resized(m->bytes, m->capacity);
        if (m->bytes == NULL)
            abort();
    }
    save_thread_local(m->bytes);
    memcpy(m->bytes + image_size, low, m->size - image_size);
}

bool fiber_save(fiber_moment *moment)
{
    if (_setjmp(moment->here) != 0)
        return true;
    copy_frames(moment);
    return false;
}

void fiber_set_back(const fiber_moment *moment)
{
    next_moment = moment;
    go_outside();
}
