/* As much of a C library as a policy needs: there is no WASI in an agent.
 *
 * Memory is only ever taken: by default each pod is evaluated by a fresh instance, whose memory goes with it. A policy in C
 * therefore keeps `instances = "per-call"` in its module.toml. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 65536u
#define ALIGN 16u

extern unsigned char __heap_base;
static uintptr_t next;

void *malloc(size_t size) {
  if (next == 0) next = (uintptr_t) &__heap_base;
  uintptr_t start = (next + ALIGN - 1) & ~(uintptr_t) (ALIGN - 1);
  uintptr_t end = start + ALIGN + size;
  if (end < start) return NULL;
  uintptr_t have = (uintptr_t) __builtin_wasm_memory_size(0) * PAGE;
  if (end > have && __builtin_wasm_memory_grow(0, (end - have + PAGE - 1) / PAGE) == (size_t) -1) return NULL;
  next = end;
  /* The size stands before the block, for realloc. */
  *(size_t *) start = size;
  return (void *) (start + ALIGN);
}

void *realloc(void *old, size_t size) {
  void *new = malloc(size);
  if (new && old) {
    size_t had = *(size_t *) ((uintptr_t) old - ALIGN);
    memcpy(new, old, had < size ? had : size);
  }
  return new;
}

void free(void *old) { (void) old; }

_Noreturn void abort(void) { __builtin_trap(); }

void *memcpy(void *to, const void *from, size_t size) {
  for (size_t i = 0; i < size; i++) ((unsigned char *) to)[i] = ((const unsigned char *) from)[i];
  return to;
}

void *memset(void *to, int byte, size_t size) {
  for (size_t i = 0; i < size; i++) ((unsigned char *) to)[i] = (unsigned char) byte;
  return to;
}

void *memchr(const void *in, int byte, size_t size) {
  for (size_t i = 0; i < size; i++)
    if (((const unsigned char *) in)[i] == (unsigned char) byte) return (unsigned char *) in + i;
  return NULL;
}

int memcmp(const void *a, const void *b, size_t size) {
  for (size_t i = 0; i < size; i++) {
    int d = ((const unsigned char *) a)[i] - ((const unsigned char *) b)[i];
    if (d) return d;
  }
  return 0;
}

size_t strlen(const char *text) {
  size_t length = 0;
  while (text[length]) length++;
  return length;
}
