// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes a file so that readers see either the old or the new one, also after a crash. Checkpoints,
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
  explicit atomic_file(const std::string& path)
      : path_(path), target_(behind_links(sys::path_of(path))) {
    std::error_code absent;
    const auto there = std::filesystem::status(target_, absent);
    if (std::filesystem::is_directory(there))
      throw io_error("cannot write '" + path + "': it is a folder");
    in_place_ = std::filesystem::exists(there) && !std::filesystem::is_regular_file(there);
    temporary_ = target_;
    if (!in_place_) temporary_ += ".tmp";
    errno = 0;
    file_.reset(in_place_ ? sys::open_in_place(target_) : open_temporary());
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
    // Otherwise the new name could reach the disk before the content does.
    if (!in_place_ && !sys::sync_file(file_.get())) refuse("write");
    if (std::fclose(file_.release()) != 0) refuse("write");
    if (!in_place_) {
      std::error_code failed;
      std::filesystem::rename(temporary_, target_, failed);
      if (failed) throw io_error("cannot write '" + path_ + "': " + failed.message());
    }
    committed_ = true;
    // The rename itself, to disk; the file is whole under either name if that does not work.
    if (!in_place_) sys::sync_folder(target_.has_parent_path() ? target_.parent_path() : ".");
  }

 private:
  /// The target of a link, whether it exists or not.
  static std::filesystem::path behind_links(std::filesystem::path path) {
    std::error_code failed;
    for (int links = 0; links < 40 && std::filesystem::is_symlink(path, failed); ++links) {
      const auto next = std::filesystem::read_symlink(path, failed);
      if (failed) break;
      path = path.parent_path() / next;  // `next` alone if it is absolute
    }
    return path;
  }
  void remove_temporary() const {
    std::error_code ignored;
    std::filesystem::remove(temporary_, ignored);
  }
  std::FILE* open_temporary() const {
    std::error_code unknown;
    const bool replaces = std::filesystem::exists(target_, unknown);
    remove_temporary();
    std::FILE* const file = sys::create_file(temporary_, replaces);
    if (file && replaces && !sys::inherit_mode(file, target_)) {
      const int reason = errno;
      std::fclose(file);
      remove_temporary();
      throw io_error("cannot give '" + sys::text_of(temporary_) + "' the owner and the mode of '" +
                     path_ + "': " + std::strerror(reason));
    }
    return file;
  }
  [[noreturn]] void refuse(const char* what) const {
    throw io_error(std::string("cannot ") + what + " '" + sys::text_of(temporary_) +
                   "': " + std::strerror(errno));
  }

  std::string path_;
  std::filesystem::path target_, temporary_;
  std::unique_ptr<std::FILE, detail::file_closer> file_;
  bool in_place_ = false, committed_ = false;
};

}  // namespace xla::io
