// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes a file so that readers see either the old or the new one, also after a crash. Checkpoints,
// safetensors, PNG and compiled programs are written with it.

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <span>
#include <string>

#include "xla/base/error.hpp"
#include "xla/base/system/file.hpp"
#include "xla/io/file.hpp"

namespace xla::io {

/// Replaces a file when all of the new one is on disk. Until commit() it has the name with ".tmp"
/// appended; if the process is killed, such a file may remain, and the next writer replaces it. One
/// writer at a time for each path. The new file gets the mode and owner of the old one. A link
/// stays, and its target is replaced. Devices and pipes are written to directly. Every function
/// throws `xla::io_error` if the system refuses; the old file then stays.
class atomic_file {
 public:
  explicit atomic_file(const std::string& path) : path_(path), target_(sys::link_target(path)) {
    const sys::file_kind there = sys::facts_of(target_).kind;
    if (there == sys::file_kind::folder)
      throw io_error("cannot write '" + path + "': it is a folder");
    in_place_ = there == sys::file_kind::other;
    temporary_ = in_place_ ? target_ : target_ + ".tmp";
    errno = 0;
    file_.reset(in_place_ ? sys::open_in_place(target_) : open_temporary());
    if (!file_) refuse("open");
  }
  atomic_file(const atomic_file&) = delete;
  atomic_file& operator=(const atomic_file&) = delete;
  ~atomic_file() {
    if (committed_) return;
    file_.reset();
    if (!in_place_) sys::remove_file(temporary_);
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
    // Otherwise the new name could reach the disk before the content does.
    if (!in_place_ && !sys::sync_file(file_.get())) refuse("write");
    if (std::fclose(file_.release()) != 0) refuse("write");
    if (!in_place_ && !sys::replace_file(temporary_, target_))
      throw io_error("cannot write '" + path_ + "': " + std::strerror(errno));
    committed_ = true;
    // The rename itself, to disk; the file is whole under either name if that does not work.
    if (!in_place_) sys::sync_folder_of(target_);
  }

 private:
  std::FILE* open_temporary() const {
    const bool replaces = sys::facts_of(target_).kind != sys::file_kind::none;
    sys::remove_file(temporary_);
    std::FILE* const file = sys::create_file(temporary_, replaces);
    if (file && replaces && !sys::inherit_mode(file, target_)) {
      const int reason = errno;
      std::fclose(file);
      sys::remove_file(temporary_);
      throw io_error("cannot give '" + temporary_ + "' the owner and the mode of '" + path_ +
                     "': " + std::strerror(reason));
    }
    return file;
  }
  [[noreturn]] void refuse(const char* what) const {
    throw io_error(std::string("cannot ") + what + " '" + temporary_ +
                   "': " + std::strerror(errno));
  }

  std::string path_, target_, temporary_;
  std::unique_ptr<std::FILE, detail::file_closer> file_;
  bool in_place_ = false, committed_ = false;
};

}  // namespace xla::io
