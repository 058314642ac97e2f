// SPDX-License-Identifier: Apache-2.0
#pragma once

// The memory of tensors' elements: reference-counted buffers, the cache of freed blocks, and memory
// of other libraries or devices. It knows shapes only for copies to the host; impl.hpp knows them.

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "xla/base/fork.hpp"
#include "xla/base/instance.hpp"
#include "xla/base/system/memory.hpp"
#include "xla/base/system/mutex.hpp"
#include "xla/shape/layout.hpp"
#include "xla/tensor/heap.hpp"

namespace xla::detail {

/// Keeps freed blocks of one size for reuse.
template <std::size_t Bytes>
class small_blocks {
 public:
  [[gnu::noinline]] static void* take(std::size_t bytes) {
    if (bytes != Bytes) return ::operator new(bytes);
    if (link* l = instance().pop()) return l;
    return heap_allocate(Bytes, alignment);
  }
  static void give(void* p) noexcept {
    small_blocks& s = instance();
    const std::lock_guard hold(s.lock_);
    s.first_ = ::new (p) link{s.first_};
  }
  static constexpr fork_order order = fork_order::stores;
  void before_fork() noexcept { lock_.lock(); }
  void after_fork(bool) noexcept { lock_.unlock(); }

 private:
  static constexpr std::size_t alignment = 16;
  struct link {
    link* next;
  };
  // Never destroyed, because tensors with static storage may be destroyed later.
  static small_blocks& instance() {
    static constinit std::atomic<small_blocks*> only{nullptr};
    return made_once(only);
  }
  link* pop() noexcept {
    const std::lock_guard hold(lock_);
    return first_ ? std::exchange(first_, first_->next) : nullptr;
  }
  spin_lock lock_;
  link* first_ = nullptr;
  memory_cache cache_{this, [](void* self) noexcept {
                        while (link* l = static_cast<small_blocks*>(self)->pop())
                          heap_free(l, alignment);
                      }};
};

/// Bytes in use by tensors and by compiled functions: now, and the maximum.
struct memory_count {
  std::atomic<std::int64_t> now{0}, most{0};

  static memory_count& instance() {
    static constinit memory_count c;
    return c;
  }
  void add(std::int64_t bytes) noexcept {
    const std::int64_t sum = now.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    std::int64_t old = most.load(std::memory_order_relaxed);
    while (sum > old && !most.compare_exchange_weak(old, sum, std::memory_order_relaxed)) {}
  }
  std::int64_t in_use() const noexcept { return now.load(std::memory_order_relaxed); }
  void remove(std::int64_t bytes) noexcept { now.fetch_sub(bytes, std::memory_order_relaxed); }
};

/// Memory for elements, 64-byte aligned. Freed blocks are cached in lists by size class, so that a
/// training loop in steady state allocates nothing. The limit on cached bytes is set, or the bytes
/// that tensors use at the moment if that is more. Beyond it, the least recently used lists are
/// returned to the system. The default limit is a sixteenth of the machine's memory, at least 256
/// MB: an eager network uses many classes in turn, and with less the next block needed would just
/// have been freed.
class buffer_cache {
 public:
  static constexpr std::size_t alignment = 64;

  [[gnu::cold, gnu::noinline]] buffer_cache() {
    if (const char* bytes = std::getenv("XLA_CACHE_LIMIT"); bytes && *bytes)
      limit_ = std::strtoll(bytes, nullptr, 10);
    else limit_ = std::max(std::int64_t{256} << 20, sys::physical_memory() / 16);
  }
  static buffer_cache& instance() {
    static constinit std::atomic<buffer_cache*> only{nullptr};
    return made_once(only);
  }
  static constexpr fork_order order = fork_order::stores;
  [[gnu::cold]] void before_fork() noexcept {
    for (list& l : lists_) l.lock.lock();
  }
  [[gnu::cold]] void after_fork(bool) noexcept {
    for (list& l : lists_) l.lock.unlock();
  }

  /// A block of a size class, or of one of the next few classes that has a free block. On return,
  /// capacity is the block's size.
  [[gnu::noinline]] void* take(std::size_t& capacity, memory_use use, int classes) {
    std::size_t size = capacity;
    for (int k = 0; k < (capacity > coarse ? classes : 1); ++k, size = class_of(size + 1))
      if (void* waiting = take_waiting(lists_[index(size)])) {
        capacity = size;
        return waiting;
      }
    return heap_allocate(capacity, alignment, use);
  }
  void give(void* p, std::size_t capacity) noexcept {
    list& l = lists_[index(capacity)];
    {
      const std::lock_guard hold(l.lock);
      l.first = ::new (p) link{l.first};
      l.capacity = capacity;
      touch(l);
    }
    const auto bytes = static_cast<std::int64_t>(capacity);
    const std::int64_t cached = cached_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    if (cached > limit_.load(std::memory_order_relaxed) &&
        cached > memory_count::instance().in_use())
      shrink();
  }
  /// The bytes of free blocks that are cached.
  std::int64_t cached() const noexcept { return cached_.load(std::memory_order_relaxed); }
  void set_limit(std::int64_t bytes) noexcept {
    limit_.store(bytes, std::memory_order_relaxed);
    shrink();
  }

  /// The size class of a request: from 64 bytes up powers of two and their midpoints, for large
  /// ones sixteen between two powers.
  static std::size_t class_of(std::size_t bytes) {
    if (bytes <= 64) return 64;
    const std::size_t power = std::bit_ceil(bytes), step = power / (power > coarse ? 32 : 4);
    if (power <= coarse) return bytes <= 3 * step ? 3 * step : power;
    return (bytes + step - 1) / step * step;
  }

 private:
  struct link {
    link* next;
  };
  struct list {
    spin_lock lock;
    std::atomic<std::uint64_t> touched{0};  ///< 0 while no block is cached
    std::size_t capacity = 0;
    link* first = nullptr;
  };
  static constexpr std::size_t coarse = std::size_t{1} << 16;
  // Not atomic as a whole: if threads interfere, the order of two lists may be lost, which does no
  // harm.
  void touch(list& l) noexcept {
    const std::uint64_t now = clock_.load(std::memory_order_relaxed);
    clock_.store(now + 1, std::memory_order_relaxed);
    l.touched.store(now, std::memory_order_relaxed);
  }
  void* take_waiting(list& l) noexcept {
    const std::lock_guard hold(l.lock);
    return l.first ? pop(l) : nullptr;
  }
  void* pop(list& l) noexcept {
    link* const block = std::exchange(l.first, l.first->next);
    if (l.first) touch(l);
    else l.touched.store(0, std::memory_order_relaxed);
    cached_.fetch_sub(static_cast<std::int64_t>(l.capacity), std::memory_order_relaxed);
    return block;
  }
  // Frees an eighth more than needed, so that it does not run for every block.
  void shrink() noexcept {
    const std::int64_t most =
        std::max(limit_.load(std::memory_order_relaxed), memory_count::instance().in_use());
    if (cached() > most) shrink_to(most - most / 8);
  }
  [[gnu::cold, gnu::noinline]] void shrink_to(std::int64_t bytes) noexcept {
    while (cached() > bytes) {
      list* oldest = nullptr;
      std::uint64_t since = 0;
      for (list& l : lists_)
        if (const auto t = l.touched.load(std::memory_order_relaxed);
            t != 0 && (!oldest || t < since)) {
          oldest = &l;
          since = t;
        }
      if (!oldest) return;
      while (void* block = cached() > bytes ? take_waiting(*oldest) : nullptr)
        heap_free(block, alignment);
    }
  }
  static std::size_t index(std::size_t capacity) {
    const std::size_t log = static_cast<std::size_t>(std::bit_width(capacity - 1));
    const std::size_t half = std::size_t{1} << (log - 1);
    return 16 * log + (capacity - half) / (half / 16) - 1;
  }
  list lists_[16 * 65];
  std::atomic<std::uint64_t> clock_{1};
  std::atomic<std::int64_t> cached_{0}, limit_{0};
  memory_cache cache_{this,
                      [](void* self) noexcept { static_cast<buffer_cache*>(self)->shrink_to(0); }};
};

/// Copies strided elements of `width` bytes into row-major order.
template <class = void>
[[gnu::cold]] void copy_row_by_row(const shape& dims, const std::int64_t* strides, const void* from,
                                   void* to, std::int64_t width) {
  std::int64_t at[max_rank] = {};
  auto* in = static_cast<const char*>(from);
  auto* out = static_cast<char*>(to);
  for (std::int64_t n = count(dims); n > 0; --n, out += width) {
    if (width == 4) std::memcpy(out, in, 4);
    else std::memcpy(out, in, static_cast<std::size_t>(width));
    for (int i = dims.rank - 1; i >= 0; --i) {
      in += strides[i] * width;
      if (++at[i] < dims[i]) break;
      in -= at[i] * strides[i] * width;
      at[i] = 0;
    }
  }
}
XLA_INSTANCE(void copy_row_by_row<void>(const shape&, const std::int64_t*, const void*, void*,
                                        std::int64_t));

struct impl;
struct buffer;

/// elements_of() for a tensor, or an alias op, whose elements are not row-major in host memory of
/// the library.
template <class = void>
void* to_host(const impl& t);
template <class = void>
buffer* share_elements(const impl& t, const impl& as);

/// Describes memory that the library does not own: another library's, or a backend's or device's.
/// There is one constant object per kind, whose address identifies it. "Home" means row-major
/// memory on the host.
struct memory_space {
  /// Frees an owner whose elements no tensor uses any more.
  void (*release)(void* owner) = nullptr;
  /// If the host cannot read the memory: waits for an owner's elements and copies them to the host,
  /// in their own order. Several threads may call it.
  void (*copy_to_host)(void* owner, void* to, std::size_t bytes) = nullptr;
  // Defined here, so that programs without such memory contain no code for it.
  void* (*to_host)(const impl& t) = &detail::to_host<>;
  buffer* (*share)(const impl& t, const impl& as) = &detail::share_elements<>;
  /// Makes a buffer in that memory, without elements, for an executable to write to.
  buffer* (*make)(const memory_space& there, std::size_t bytes) = nullptr;
  /// For elements whose order only the memory space knows: executes an op that reads them.
  void (*run)(impl& t) = nullptr;
};

/// Elements in such memory; the space defines what an owner is.
struct foreign_memory {
  const memory_space* space = nullptr;
  void* owner = nullptr;
  void* data = nullptr;  ///< if the host can read them
  layout order = {};
};

/// Data derived from a buffer's elements, such as packed weights. The buffer owns it and drops it
/// when it is written.
struct cached_form {
  /// kind: an address unique to the derived class, which identifies it.
  explicit cached_form(const void* kind) : kind(kind) {}
  virtual ~cached_form() = default;
  const void* const kind;
  cached_form* next = nullptr;
};

/// The elements that one or more tensors share. `ticket` is the number of the last asynchronous
/// execution that writes them; 0: they are valid. The buffer also records their order and location,
/// so readers call elements_of(tensor).
struct buffer {
  std::atomic<int> refs{1};
  /// References by executions in flight, whose tickets precede all later ones.
  std::atomic<int> in_flight{0};
  std::atomic<void*> host_copy{
      nullptr};            ///< a row-major copy on the host; nullptr until it is needed
  void* memory = nullptr;  ///< the elements in host memory; nullptr if they are elsewhere
  std::size_t bytes = 0;
  std::atomic<std::uint64_t> ticket{0};
  /// Memory of someone else, which the library must not write; nullptr: its own.
  const memory_space* space = nullptr;
  void* owner = nullptr;  ///< the elements' owner, as `space` defines it
  std::atomic<cached_form*> forms{nullptr};
  layout order;

  static buffer* borrow(const foreign_memory& from, std::size_t bytes) {
    buffer* b = new buffer;
    b->memory = from.data;
    b->host_copy = from.order.is_row_major() ? from.data : nullptr;
    b->bytes = bytes;
    b->space = from.space;
    b->owner = from.owner;
    b->order = from.order;
    return b;
  }
  [[gnu::noinline]] static buffer* make(std::size_t bytes, memory_use use = {}, int classes = 3) {
    std::size_t capacity = buffer_cache::class_of(bytes);
    void* memory = buffer_cache::instance().take(capacity, use, classes);
    buffer* b = nullptr;
    try {
      b = new buffer;
    } catch (...) {
      buffer_cache::instance().give(memory, capacity);
      throw;
    }
    b->host_copy.store(b->memory = memory, std::memory_order_relaxed);
    b->bytes = capacity;
    memory_count::instance().add(static_cast<std::int64_t>(capacity));
    return b;
  }
  void retain() noexcept { refs.fetch_add(1, std::memory_order_relaxed); }
  [[gnu::noinline]] void release() noexcept {
    if (refs.fetch_sub(1, std::memory_order_acq_rel) == 1) end();
  }
  /// Drops derived forms; called before the elements are written.
  void forget_forms() noexcept {
    if (forms.load(std::memory_order_relaxed)) drop_forms();
  }
  /// Attaches a derived form to the elements.
  void keep(cached_form& f) noexcept {
    f.next = forms.load(std::memory_order_acquire);
    while (!forms.compare_exchange_weak(f.next, &f, std::memory_order_acq_rel)) {}
  }
  /// Whether the buffer has no other reference, and a writer in that memory space (nullptr: the
  /// host) may write it.
  bool unique(const memory_space* there = nullptr) const noexcept {
    return refs.load(std::memory_order_acquire) == 1 && space == there;
  }
  /// The number of references except those of executions in flight, plus one if a writer in that
  /// memory space may not write. In this order of reads, an execution that ends in between can only
  /// make the number too large.
  int held(const memory_space* there = nullptr) const noexcept {
    const int all = refs.load(std::memory_order_acquire) + (space != there);
    return all - in_flight.load(std::memory_order_acquire);
  }
  /// Sets a new owner of the elements; host copies become invalid.
  void replace(void* by) noexcept {
    forget_forms();
    if (void* const copy = host_copy.exchange(nullptr); copy != memory)
      heap_free(copy, buffer_cache::alignment);
    space->release(std::exchange(owner, by));
  }

  static void* operator new(std::size_t n) { return small_blocks<sizeof(buffer)>::take(n); }
  static void operator delete(void* p) noexcept { small_blocks<sizeof(buffer)>::give(p); }

 private:
  [[gnu::cold, gnu::noinline]] void drop_forms() noexcept {
    cached_form* f = forms.exchange(nullptr, std::memory_order_relaxed);
    while (f) delete std::exchange(f, f->next);
  }
  [[gnu::noinline]] void end() noexcept {
    forget_forms();
    if (space) {
      if (void* const copy = host_copy; copy != memory) heap_free(copy, buffer_cache::alignment);
      space->release(owner);
    } else {
      // First, because the size of this cache depends on the bytes that tensors use.
      memory_count::instance().remove(static_cast<std::int64_t>(bytes));
      buffer_cache::instance().give(memory, bytes);
    }
    delete this;
  }
};

}  // namespace xla::detail

#if XLA_RUNTIME_HERE
#include "xla/tensor/memory.hpp"
#endif
