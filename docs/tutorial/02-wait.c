#include <bide/async.h>
#include <bide/bide.h>
#include <stdio.h>

async int greet(const char *name)
{
    try await bide_sleep_for(BIDE_MILLISECONDS(1));
    printf("hello %s\n", name);
    return 1; /* greeting */
}

async int main(void)
{
    int count = try await greet("ann");
    count += try await greet("bob");
    printf("%d greetings\n", count);
    return 0;
}
