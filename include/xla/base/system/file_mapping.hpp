// SPDX-License-Identifier: Apache-2.0
#pragma once

// Maps the bytes of a file into memory. io/file.hpp uses it, and reads the file on systems
// without memory maps.

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <system_error>

#include "xla/base/system/path.hpp"
#include "xla/base/system/platform.hpp"
#include "xla/base/system/windows.hpp"

#if XLA_POSIX
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

namespace xla::sys {

/// The pages of a file, which stay mapped after it is closed, renamed or removed. It has no bytes
/// for an empty file, and where that failed: failed() then is what failed, and errno says why.
class file_mapping {
 public:
  explicit file_mapping(const std::string& path) { open(path); }
  file_mapping(const file_mapping&) = delete;
  file_mapping& operator=(const file_mapping&) = delete;
  ~file_mapping() { close(); }

  std::span<const std::uint8_t> bytes() const noexcept {
    return {static_cast<const std::uint8_t*>(start_), size_};
  }

  const char* failed() const noexcept { return failed_; }

 private:
#if XLA_POSIX
  void open(const std::string& path) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return void(failed_ = "open");
    struct stat facts {};
    if (::fstat(file, &facts) != 0) failed_ = "read";
    else if (facts.st_size > 0) map(file, facts.st_size);
    const int reason = errno;
    ::close(file);
    errno = reason;
  }
  void map(int file, off_t size) {
    const auto bytes = static_cast<std::size_t>(size);
    void* const pages = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0);
    if (pages == MAP_FAILED) return void(failed_ = "map");
    start_ = pages;
    size_ = bytes;
    ::madvise(pages, bytes, MADV_WILLNEED);  // a hint
  }
  void close() {
    if (start_) ::munmap(start_, size_);
  }
#elif XLA_WINDOWS
  void open(const std::string& path) {
    constexpr unsigned long read = 0x80000000, share_all = 7, existing = 3;
    const auto name = path_of(path);
    void* const file = ::CreateFileW(name.c_str(), read, share_all, nullptr, existing, 0, nullptr);
    if (reinterpret_cast<std::intptr_t>(file) == -1) return fail("open", ENOENT);
    std::error_code unknown;
    const auto size = std::filesystem::file_size(name, unknown);
    if (unknown) fail("read", EIO);
    else if (size > 0) map(file, static_cast<std::size_t>(size));
    ::CloseHandle(file);
  }
  void map(void* file, std::size_t bytes) {
    constexpr unsigned long read_only = 2, read = 4;
    void* const section = ::CreateFileMappingW(file, nullptr, read_only, 0, 0, nullptr);
    start_ = section ? ::MapViewOfFile(section, read, 0, 0, 0) : nullptr;
    if (section) ::CloseHandle(section);  // the view keeps it
    if (start_) size_ = bytes;
    else fail("map", ENOMEM);
  }
  void fail(const char* what, int reason) {
    failed_ = what;
    errno = reason;
  }
  void close() {
    if (start_) ::UnmapViewOfFile(start_);
  }
#else
  void open(const std::string&) {}
  void close() {}
#endif

  void* start_ = nullptr;
  std::size_t size_ = 0;
  const char* failed_ = nullptr;
};

/// Whether files can be mapped at all.
inline constexpr bool has_file_mappings = XLA_POSIX || XLA_WINDOWS;

}  // namespace xla::sys
