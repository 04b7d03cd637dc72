#include <bide/bide.h>
#include <stdio.h>

struct load {
    bide_task task;
};

bide_coroutine(load_body)
{
    bide_begin(load_body, struct load * self);
    (void)self;
    puts("loads the table"); /* may await */
    bide_end();
}

struct user {
    bide_task task;
    bide_once *once;
    bide_once_operation run;
    struct load load;
};

bide_coroutine(user_body)
{
    bide_begin(user_body, struct user * self);
    bide_try(bide_once_run(&self->run, self->once, bide_call(&self->load, &load_body)));
    puts("uses the table");
    bide_end();
}

int main(void)
{
    bide_once once;
    struct user one, two;
    bide_once_init(&once);
    return bide_sync_wait(bide_call(&one, &user_body, once = &once)) != 0 ||
           bide_sync_wait(bide_call(&two, &user_body, once = &once)) != 0;
}
