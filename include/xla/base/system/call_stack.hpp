// SPDX-License-Identifier: Apache-2.0
#pragma once

// Return addresses of this thread's stack, the modules that they are in, and the output of a
// command that reads their lines. Where the system has none of that, the results are empty.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "xla/base/system/platform.hpp"

#if XLA_POSIX && __has_include(<unwind.h>) && __has_include(<link.h>) && __has_include(<cxxabi.h>)
#include <cxxabi.h>
#include <dlfcn.h>
#include <link.h>
#include <unwind.h>
#define XLA_HAS_CALL_STACK 1
#else
#define XLA_HAS_CALL_STACK 0
#endif

namespace xla::sys {

/// Addresses within the calls that are under way, the innermost first.
using call_stack = std::vector<std::uintptr_t>;

/// An executable or a shared library, and where in it an address is.
struct module_address {
  std::uintptr_t address, offset = 0;
  std::string file;  // empty: in none
};

#if XLA_HAS_CALL_STACK

/// At most `most` addresses.
template <class = void>
[[gnu::cold, gnu::noinline]] call_stack own_call_stack(std::size_t most) {
  call_stack all;
  all.reserve(most);
  _Unwind_Backtrace(
      [](_Unwind_Context* c, void* to) {
        auto& stack = *static_cast<call_stack*>(to);
        int before = 0;
        const std::uintptr_t at = _Unwind_GetIPInfo(c, &before);
        if (at == 0 || stack.size() == stack.capacity()) return _URC_END_OF_STACK;
        stack.push_back(before ? at : at - 1);  // within the call, not after it
        return _URC_NO_REASON;
      },
      &all);
  return all;
}

template <class = void>
[[gnu::cold]] std::string program_path() {
  const std::unique_ptr<char, void (*)(void*)> path(::realpath("/proc/self/exe", nullptr),
                                                    &std::free);
  return path ? path.get() : "";
}

template <class = void>
[[gnu::cold]] module_address find_module(std::uintptr_t address) {
  module_address m{address, 0, ""};
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* to) {
        auto& found = *static_cast<module_address*>(to);
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& part = info->dlpi_phdr[i];
          const std::uintptr_t from = info->dlpi_addr + part.p_vaddr;
          if (part.p_type != PT_LOAD || found.address < from ||
              found.address >= from + part.p_memsz)
            continue;
          found.offset = found.address - info->dlpi_addr;
          found.file = *info->dlpi_name ? info->dlpi_name : program_path<>();
          return 1;
        }
        return 0;
      },
      &m);
  return m;
}

/// The name of the function at an address, if its module exports it.
template <class = void>
[[gnu::cold]] std::string exported_name(std::uintptr_t address) {
  Dl_info info{};
  if (!::dladdr(reinterpret_cast<void*>(address), &info) || !info.dli_sname) return "";
  int failed = 0;
  const std::unique_ptr<char, void (*)(void*)> name(
      abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, &failed), &std::free);
  return name ? name.get() : info.dli_sname;
}

/// What a command of the shell prints.
template <class = void>
[[gnu::cold]] std::string output_of(const std::string& command) {
  std::string all;
  std::FILE* const from = ::popen(command.c_str(), "r");
  if (!from) return all;
  char part[4096];
  for (std::size_t n; (n = std::fread(part, 1, sizeof part, from)) > 0;) all.append(part, n);
  ::pclose(from);
  return all;
}

#else

template <class = void>
call_stack own_call_stack(std::size_t) {
  return {};
}
template <class = void>
module_address find_module(std::uintptr_t address) {
  return {address, 0, ""};
}
template <class = void>
std::string exported_name(std::uintptr_t) {
  return "";
}
template <class = void>
std::string output_of(const std::string&) {
  return "";
}

#endif

}  // namespace xla::sys
