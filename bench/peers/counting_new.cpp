// operator new as in the C++ library, with a count of bytes.

#include "memory.h"

#include <cstdlib>
#include <new>

size_t peer_new_bytes;

void *operator new(std::size_t size)
{
    void *memory = std::malloc(size);
    if (memory == nullptr)
        throw std::bad_alloc();
    peer_new_bytes += size;
    return memory;
}

void operator delete(void *memory) noexcept
{
    std::free(memory);
}

void operator delete(void *memory, std::size_t) noexcept
{
    std::free(memory);
}
