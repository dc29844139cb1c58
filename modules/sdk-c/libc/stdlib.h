/* The part of <stdlib.h> that the bindings need. */
#ifndef AETHER_STDLIB_H
#define AETHER_STDLIB_H
#include <stddef.h>
void *malloc(size_t size);
void *realloc(void *old, size_t size);
void free(void *old);
_Noreturn void abort(void);
#endif
