/* Ways through a function that structure does not show: jumps into loops and out of blocks. */
#include <stdio.h>

static void copy(char *to, const char *from, int count)
{
    int n = (count + 7) / 8;
    switch (count % 8) {
    case 0:
        do {
            *to++ = *from++;
        case 7:
            *to++ = *from++;
        case 6:
            *to++ = *from++;
        case 5:
            *to++ = *from++;
        case 4:
            *to++ = *from++;
        case 3:
            *to++ = *from++;
        case 2:
            *to++ = *from++;
        case 1:
            *to++ = *from++;
        } while (--n > 0);
    }
}

static int jumps(int n)
{
    int i = 0, sum = 0;
    if (n > 3)
        goto inside;
    for (i = 0; i < 10; i++) {
        sum += i;
        if (sum > 20)
            goto outside;
    inside:
        sum += n;
        while (sum & 1) {
            sum++;
            if (n == 2)
                break;
            if (sum > 30)
                goto outside;
        }
    }
outside:
    for (;;) {
        if (sum-- < 10)
            break;
        if (sum % 3)
            continue;
        sum -= 2;
    }
    return sum * 10 + i;
}

static int collatz(unsigned n)
{
    int steps = 0;
loop:
    if (n == 1)
        return steps;
    n = n & 1 ? 3 * n + 1 : n / 2;
    steps++;
    goto loop;
}

static int nested(int n)
{
    int found = 0;
    for (int i = 0; i < n; i++)
        for (int j = i; j < n; j++)
            for (int k = j; k < n; k++) {
                if (i + j + k != n)
                    continue;
                switch (i * j * k % 4) {
                    int weight;
                default:
                    weight = 1;
                    found += weight;
                    break;
                case 0:
                    if (k == 1)
                        goto done;
                    weight = 100;
                    found += weight;
                }
            }
done:
    return found;
}

int main(void)
{
    char text[32] = "";
    copy(text, "twenty-one characters", 22);
    puts(text);
    copy(text, "eight ch", 8);
    puts(text);
    for (int n = 0; n < 6; n++)
        printf("%d %d %d\n", jumps(n), collatz((unsigned)n + 1), nested(n + 3));
    return 0;
}
