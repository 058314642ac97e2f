// SPDX-License-Identifier: Apache-2.0
#pragma once

// What heap.cpp counts, seen from the program that it is loaded into: bytes now, and at most.

#include <dlfcn.h>

#include <fstream>
#include <limits>
#include <stdexcept>
#include <string>

namespace bench {

/// Bytes of this process in memory: now, "VmRSS:", or at most so far, "VmHWM:".
inline long long resident(const char* key) {
  std::ifstream status{"/proc/self/status"};
  for (std::string word; status >> word;) {
    long long kilobytes = 0;
    if (word == key && status >> kilobytes) return 1024 * kilobytes;
    status.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  throw std::runtime_error("/proc/self/status does not say what is resident");
}

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
