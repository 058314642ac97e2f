// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>

#include <stdexcept>

namespace bench {

/// What heap.cpp counts, in a program before which it was loaded.
class heap {
 public:
  long long live() const { return live_(); }
  long long most() const { return most_(); }
  void forget() const { forget_(); }

 private:
  template <class F>
  static F* find(const char* name) {
    if (void* p = dlsym(RTLD_DEFAULT, name)) return reinterpret_cast<F*>(p);
    throw std::runtime_error("start this with LD_PRELOAD=libbench_heap.so");
  }
  long long (*live_)() = find<long long()>("bench_heap_live");
  long long (*most_)() = find<long long()>("bench_heap_most");
  void (*forget_)() = find<void()>("bench_heap_forget");
};

}  // namespace bench
