#include <bide/bide.h>
#include <stdio.h>

struct load {
    bide_shared_task shared;
    int result;
};

bide_shared_coroutine(load_body)
{
    bide_begin(load_body, struct load * self);
    puts("loads"); /* once, and may await */
    self->result = 42;
    bide_end();
}

struct user {
    bide_task task;
    struct load *load;
    bide_shared_task_waiter wait;
};

bide_coroutine(user_body)
{
    bide_begin(user_body, struct user * self);
    bide_try(bide_shared_task_wait(&self->wait, &self->load->shared));
    printf("%d\n", self->load->result);
    bide_end();
}

int main(void)
{
    struct load load;
    struct user one, two;
    bide_shared_task_init(&load.shared, &load_body, &bide_default_context);
    return bide_sync_wait(bide_call(&one, &user_body, load = &load)) != 0 ||
           bide_sync_wait(bide_call(&two, &user_body, load = &load)) != 0;
}
