// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <system_error>

#ifndef _WIN32
#include <fcntl.h>
#include <unistd.h>
#endif

#include "xla/base/error.hpp"
#include "xla/io/file.hpp"

namespace xla::io {

/// A file that takes the place of another only once all of it is on disk: until commit() it has
/// that name with ".tmp" behind it. Killed at any moment, at most such a file stays, which the next
/// writer replaces. One writer at a time for each path. Every function throws `xla::io_error` when
/// the system refuses; what was there then stays.
class atomic_file {
 public:
  explicit atomic_file(const std::string& path) : path_(path), target_(path) {
    // A link stays a link; the file behind it is the one to replace.
    std::error_code broken;
    if (std::filesystem::is_symlink(target_, broken))
      if (const auto behind = std::filesystem::canonical(path, broken); !broken) target_ = behind;
    temporary_ = target_;
    temporary_ += ".tmp";
    errno = 0;
    file_.reset(std::fopen(temporary_.string().c_str(), "wb"));
    if (!file_) refuse("open");
  }
  atomic_file(const atomic_file&) = delete;
  atomic_file& operator=(const atomic_file&) = delete;
  ~atomic_file() {
    if (committed_) return;
    file_.reset();
    std::error_code ignored;
    std::filesystem::remove(temporary_, ignored);
  }

  /// Appends bytes.
  void write(std::span<const std::uint8_t> bytes) {
    errno = 0;
    if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size()) refuse("write");
  }

  /// Puts the file in place; the last call.
  void commit() {
    errno = 0;
    if (std::fflush(file_.get()) != 0) refuse("write");
#ifndef _WIN32
    // Or the new name could reach the disk before what it names.
    if (::fsync(::fileno(file_.get())) != 0) refuse("write");
#endif
    if (std::fclose(file_.release()) != 0) refuse("write");
    std::error_code failed;
    std::filesystem::rename(temporary_, target_, failed);
    if (failed) throw io_error("cannot write '" + path_ + "': " + failed.message());
    committed_ = true;
    sync_folder();
  }

 private:
  [[noreturn]] void refuse(const char* what) const {
    throw io_error(std::string("cannot ") + what + " '" + temporary_.string() +
                   "': " + std::strerror(errno));
  }
  /// The rename itself, to disk; the file is whole under either name if that does not work.
  void sync_folder() const {
#ifndef _WIN32
    const auto folder = target_.has_parent_path() ? target_.parent_path() : ".";
    const int handle = ::open(folder.c_str(), O_RDONLY | O_CLOEXEC);
    if (handle < 0) return;
    ::fsync(handle);
    ::close(handle);
#endif
  }

  std::string path_;
  std::filesystem::path target_, temporary_;
  std::unique_ptr<std::FILE, detail::file_closer> file_;
  bool committed_ = false;
};

}  // namespace xla::io
