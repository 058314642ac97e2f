// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <random>

#include "catch.hpp"

namespace test {

/// Memory of elements that ends, or begins, where nothing may be touched.
template <class T>
class fenced {
 public:
  fenced(std::int64_t count, bool at_end, std::mt19937& random) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(T);
    const std::size_t room = (bytes + page - 1) / page * page;
    size_ = room + 2 * page;
    base_ = static_cast<char*>(mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    REQUIRE(base_ != MAP_FAILED);
    REQUIRE(mprotect(base_ + page, room, PROT_READ | PROT_WRITE) == 0);
    data_ = reinterpret_cast<T*>(base_ + page + (at_end ? room - bytes : 0));
    for (std::int64_t i = 0; i < count; ++i)
      data_[i] = static_cast<T>(std::uniform_real_distribution<float>(-1, 1)(random));
  }
  ~fenced() { munmap(base_, size_); }
  fenced(const fenced&) = delete;
  T* data() const { return data_; }

 private:
  char* base_;
  std::size_t size_;
  T* data_;
};

}  // namespace test
