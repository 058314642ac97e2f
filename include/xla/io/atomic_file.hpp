// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes a file so that readers see the old or the new one whole, also after a crash. Checkpoints,
// safetensors, PNG and compiled programs are written with it.

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
#include <sys/stat.h>
#include <unistd.h>
#endif

#include "xla/base/error.hpp"
#include "xla/io/file.hpp"

namespace xla::io {

/// A file that takes the place of another only once all of it is on disk: until commit() it has
/// that name with ".tmp" after it. Killed at any moment, at most such a file stays, which the next
/// writer replaces. One writer at a time for each path. The new file has the mode and the owner of
/// the one whose place it takes. Through a link the file behind it is replaced, and what is no
/// regular file (a device, a pipe) is written to as it is. Every function throws `xla::io_error`
/// when the system refuses; what was there then stays.
class atomic_file {
 public:
  explicit atomic_file(const std::string& path) : path_(path), target_(behind_links(path)) {
    std::error_code absent;
    const auto there = std::filesystem::status(target_, absent);
    if (std::filesystem::is_directory(there))
      throw io_error("cannot write '" + path + "': it is a folder");
    in_place_ = std::filesystem::exists(there) && !std::filesystem::is_regular_file(there);
    temporary_ = target_;
    if (!in_place_) temporary_ += ".tmp";
    errno = 0;
    file_.reset(in_place_ ? open_in_place() : open_temporary());
    if (!file_) refuse("open");
  }
  atomic_file(const atomic_file&) = delete;
  atomic_file& operator=(const atomic_file&) = delete;
  ~atomic_file() {
    if (committed_) return;
    file_.reset();
    if (!in_place_) remove_temporary();
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
    if (!in_place_ && ::fsync(::fileno(file_.get())) != 0) refuse("write");
#endif
    if (std::fclose(file_.release()) != 0) refuse("write");
    if (!in_place_) {
      std::error_code failed;
      std::filesystem::rename(temporary_, target_, failed);
      if (failed) throw io_error("cannot write '" + path_ + "': " + failed.message());
    }
    committed_ = true;
    if (!in_place_) sync_folder();
  }

 private:
  /// Where a link leads to, whether something is there yet or not.
  static std::filesystem::path behind_links(std::filesystem::path path) {
    std::error_code failed;
    for (int links = 0; links < 40 && std::filesystem::is_symlink(path, failed); ++links) {
      const auto next = std::filesystem::read_symlink(path, failed);
      if (failed) break;
      path = path.parent_path() / next;  // next alone, if it is absolute
    }
    return path;
  }
  void remove_temporary() const {
    std::error_code ignored;
    std::filesystem::remove(temporary_, ignored);
  }
#ifdef _WIN32
  std::FILE* open_in_place() const { return std::fopen(target_.string().c_str(), "wb"); }
  std::FILE* open_temporary() const { return std::fopen(temporary_.string().c_str(), "wb"); }
#else
  /// A pipe that nobody reads is refused; waiting for a reader could last for ever.
  std::FILE* open_in_place() const {
    const int handle = ::open(target_.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (handle < 0) return nullptr;
    ::fcntl(handle, F_SETFL, ::fcntl(handle, F_GETFL) & ~O_NONBLOCK);
    return stream_of(handle);
  }
  std::FILE* open_temporary() const {
    struct stat old {};
    const bool replaces = ::stat(target_.c_str(), &old) == 0;
    remove_temporary();
    const int handle = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                              replaces ? mode_t{0600} : mode_t{0666});
    if (handle < 0) return nullptr;
    std::FILE* const file = stream_of(handle);
    if (file && replaces && !inherit(handle, old)) {
      const int reason = errno;
      std::fclose(file);
      remove_temporary();
      throw io_error("cannot give '" + temporary_.string() + "' the owner and the mode of '" +
                     path_ + "': " + std::strerror(reason));
    }
    return file;
  }
  static bool inherit(int handle, const struct stat& old) {
    struct stat mine {};
    if (::fstat(handle, &mine) != 0) return false;
    const bool other_owner = mine.st_uid != old.st_uid || mine.st_gid != old.st_gid;
    if (other_owner && ::fchown(handle, old.st_uid, old.st_gid) != 0) return false;
    return ::fchmod(handle, old.st_mode & 07777) == 0;
  }
  static std::FILE* stream_of(int handle) {
    std::FILE* const file = ::fdopen(handle, "wb");
    if (!file) ::close(handle);
    return file;
  }
#endif
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
  bool in_place_ = false, committed_ = false;
};

}  // namespace xla::io
