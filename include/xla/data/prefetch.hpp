// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes values ahead on another thread, in order. DataLoader uses it; prefetch_thread.hpp has the
// thread.

#include <cstdint>
#include <memory>
#include <utility>

#include "xla/base/dependent.hpp"
#include "xla/base/instance.hpp"

namespace xla::data {
namespace detail {

/// The type-erased producer of a prefetching thread: value(i) returns a heap object, which free
/// destroys.
struct prefetch_source {
  void* (*make)(void* self, std::int64_t i);
  void (*free)(void* value);
  void* self;
};

/// The thread and the values that it has made; data/prefetch_thread.hpp defines it.
template <class In>
class basic_prefetch_thread {
 public:
  basic_prefetch_thread(std::int64_t count, std::int64_t ahead, prefetch_source source);
  basic_prefetch_thread(const basic_prefetch_thread&) = delete;
  basic_prefetch_thread& operator=(const basic_prefetch_thread&) = delete;
  ~basic_prefetch_thread();
  void* take();

 private:
  struct state;
  state* state_;
};

}  // namespace detail

/// Makes values in order on a thread of its own, at most `ahead` (at least 1) more than were taken.
/// An exception while making a value is thrown when the value is taken. The destructor waits for
/// the value that is being made.
template <class Value>
class Prefetcher {
 public:
  /// The values are make(0), make(1), …, make(count - 1), called on the other thread.
  template <class Make>
  Prefetcher(std::int64_t count, std::int64_t ahead, Make make)
      : make_(std::make_shared<Make>(std::move(make))),
        thread_(count, ahead,
                {[](void* self, std::int64_t i) -> void* {
                   return new Value((*static_cast<const Make*>(self))(i));
                 },
                 [](void* value) { delete static_cast<Value*>(value); }, make_.get()}) {}

  /// The next value; null after the last. After an exception, the same exception again.
  std::unique_ptr<Value> take() {
    return std::unique_ptr<Value>(static_cast<Value*>(thread_.take()));
  }

 private:
  std::shared_ptr<void> make_;
  xla::dependent<Value, detail::basic_prefetch_thread<void>> thread_;
};

}  // namespace xla::data

#if XLA_RUNTIME_HERE
#include "xla/data/prefetch_thread.hpp"
#endif
