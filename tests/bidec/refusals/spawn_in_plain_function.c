/*
 * says: spawn is used in f, which is a plain function: declare that async, or start the async function with bide_spawn
 */
#include <bide/async.h>

struct shell {
    int (*spawn)(int);
};

async int g(int n)
{
    return n;
}

int f(struct shell *shell, bide_scope *scope);
int f(struct shell *shell, bide_scope *scope)
{
    shell->spawn(1); /* another one */
    return spawn(scope, g(1)); /* HERE */
}
