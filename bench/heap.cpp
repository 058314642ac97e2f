// SPDX-License-Identifier: Apache-2.0
// A library to load before a program's others: counts the bytes that live on the heap of malloc's
// family, and the most that ever did since asked to forget. For the part `memory`.

#include <malloc.h>

#include <atomic>
#include <cerrno>
#include <cstddef>

namespace {

std::atomic<long long> live{0}, most{0};

void* came(void* p) {
  const auto bytes = static_cast<long long>(malloc_usable_size(p));
  const long long now = live.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  long long seen = most.load(std::memory_order_relaxed);
  while (now > seen && !most.compare_exchange_weak(seen, now, std::memory_order_relaxed)) {}
  return p;
}

void goes(void* p) {
  live.fetch_sub(static_cast<long long>(malloc_usable_size(p)), std::memory_order_relaxed);
}

}  // namespace

extern "C" {

long long bench_heap_live() { return live.load(); }
long long bench_heap_most() { return most.load(); }
void bench_heap_forget() { most.store(live.load()); }

void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void __libc_free(void*);

void* malloc(std::size_t n) { return came(__libc_malloc(n)); }
void* calloc(std::size_t n, std::size_t size) { return came(__libc_calloc(n, size)); }
void* realloc(void* p, std::size_t n) {
  const auto before = static_cast<long long>(malloc_usable_size(p));
  void* const q = __libc_realloc(p, n);
  if (!q && n) return q;
  live.fetch_sub(before, std::memory_order_relaxed);
  return came(q);
}
void free(void* p) {
  goes(p);
  __libc_free(p);
}
void* memalign(std::size_t alignment, std::size_t n) { return came(__libc_memalign(alignment, n)); }
void* aligned_alloc(std::size_t alignment, std::size_t n) { return memalign(alignment, n); }
int posix_memalign(void** p, std::size_t alignment, std::size_t n) {
  void* const q = memalign(alignment, n);
  if (!q && n) return ENOMEM;
  *p = q;
  return 0;
}
}
