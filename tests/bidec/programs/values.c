/* Values of every kind across awaits: widths, signs, floats, complex numbers, structs by value, shadowing. */
#include <complex.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct big {
    int values[20];
    const char *name;
};

struct odd {
    char c;
    long double wide;
    struct {
        unsigned a : 3, b : 13;
        signed c : 4;
    } bits;
};

static struct big make(int seed, const char *name)
{
    struct big big = {.name = name};
    for (int i = 0; i < 20; i++)
        big.values[i] = seed * i;
    return big;
}

static int sum(struct big big)
{
    int total = 0;
    for (int i = 0; i < 20; i++)
        total += big.values[i];
    return total + (int)strlen(big.name);
}

static int8_t narrow(int value)
{
    return (int8_t)value;
}

static double _Complex turn(double _Complex z, int times)
{
    while (times-- > 0)
        z *= I;
    return z;
}

static bool odd(unsigned n);

static bool even(unsigned n)
{
    return n == 0 || odd(n - 1);
}

static bool odd(unsigned n)
{
    return n != 0 && even(n - 1);
}

static uint64_t mix(uint64_t x, unsigned char c, short s, float f, double d)
{
    return x * 31 + c + (uint64_t)(s + 1000) + (uint64_t)(f * 2) + (uint64_t)(d * 4);
}

/* The result is const, and is assigned to. */
static const int *const element(const int *of, int n)
{
    return of + n;
}

int main(void)
{
    int x = 1;
    {
        long x = 2;
        {
            char x = 3;
            printf("%d ", x);
            x += 125;
            printf("%d ", x);
        }
        printf("%ld ", x);
    }
    printf("%d\n", x);
    printf("%d %d\n", sum(make(3, "three")), sum(make(-2, "minus")));
    printf("%d %d %d\n", narrow(300), narrow(128), narrow(-129));
    double _Complex z = turn(1 + 2 * I, 3);
    printf("%.1f %.1f\n", creal(z), cimag(z));
    printf("%d %d\n", even(10), odd(10));
    struct odd odd_one = {'c', 1.25L, {5, 4097, -3}};
    odd_one.bits.b += 2;
    odd_one.bits.c--;
    odd_one.wide *= 3;
    printf("%c %.2Lf %u %u %d\n", odd_one.c, odd_one.wide, odd_one.bits.a, odd_one.bits.b, odd_one.bits.c);
    uint64_t hash = 7;
    for (int i = 0; i < 10; i++)
        hash = mix(hash, (unsigned char)(i * 50), (short)-i, 0.5f * (float)i, 0.25 * i);
    printf("%llu\n", (unsigned long long)hash);
    int matrix[3][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}, {9, 10, 11, 12}}, (*row)[4] = matrix;
    for (int i = 0; i < 3; i++, row++)
        for (int j = 0; j < 4; j++)
            (*row)[j] = (*row)[j] > 6 ? -(*row)[j] : (*row)[j] << 1;
    for (int i = 0; i < 12; i++)
        printf("%d ", (&matrix[0][0])[i]);
    printf("%d ", *element(&matrix[0][0], 5));
    const char *words[] = {"one", [3] = "four", [1] = "two"}, **word = words;
    for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
        printf("%s ", word[i] ? word[i] : "none");
    puts((x & 1 ? "odd" : "even"));
    unsigned char small = 200;
    small += 100;
    x = small++;
    x += ++small;
    x ^= x << 3 | 5;
    return x & 127;
}
