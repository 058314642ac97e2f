// SPDX-License-Identifier: Apache-2.0
#pragma once

// Loads a shared library that stays until the process ends, such as a plugin of PJRT.

#include <string>

#include "xla/base/system/path.hpp"
#include "xla/base/system/platform.hpp"
#include "xla/base/system/windows.hpp"

#if XLA_POSIX
#include <dlfcn.h>
#endif

namespace xla::sys {

/// A shared library that is loaded. It is false where that failed; error() says why.
class library {
 public:
  explicit library(const std::string& path) {
#if XLA_POSIX
    // Only a path with a slash in it is one to dlopen, which else searches.
    const std::string file = path.find('/') == path.npos ? "./" + path : path;
    handle_ = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle_) error_ = ::dlerror();
#elif XLA_WINDOWS
    handle_ = ::LoadLibraryW(path_of(path).c_str());
    if (!handle_) error_ = path + ": error " + std::to_string(::GetLastError());
#else
    error_ = path + ": this system has no shared libraries";
#endif
  }
  explicit operator bool() const noexcept { return handle_ != nullptr; }
  const std::string& error() const noexcept { return error_; }

  /// A function of the library; nullptr where it has none of that name.
  template <class Function>
  Function* find([[maybe_unused]] const char* name) const noexcept {
#if XLA_POSIX
    return reinterpret_cast<Function*>(::dlsym(handle_, name));
#elif XLA_WINDOWS
    return reinterpret_cast<Function*>(
        reinterpret_cast<void*>(::GetProcAddress(static_cast<HINSTANCE__*>(handle_), name)));
#else
    return nullptr;
#endif
  }

 private:
  void* handle_ = nullptr;
  std::string error_;
};

}  // namespace xla::sys
