/* The part of <string.h> that the bindings need, and what policies want most. */
#ifndef AETHER_STRING_H
#define AETHER_STRING_H
#include <stddef.h>
void *memcpy(void *to, const void *from, size_t size);
void *memset(void *to, int byte, size_t size);
void *memchr(const void *in, int byte, size_t size);
int memcmp(const void *a, const void *b, size_t size);
size_t strlen(const char *text);
#endif
