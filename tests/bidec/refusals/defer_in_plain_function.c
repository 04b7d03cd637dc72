/*
 * says: defer is used in f, which is a plain function
 */
#include <bide/async.h>
#include <stdio.h>

void f(int n);
void f(int n)
{
    defer puts("end"); /* HERE */
    printf("%d\n", n);
}
