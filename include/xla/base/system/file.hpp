// SPDX-License-Identifier: Apache-2.0
#pragma once

// What io::atomic_file needs of a system: a new file that takes over another's owner and mode, and
// writes that have reached the disk. Every function reports failure by its result and errno.

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

#include "xla/base/system/open_file.hpp"
#include "xla/base/system/platform.hpp"

#if XLA_POSIX || XLA_WASI
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#else
#include <filesystem>
#include <system_error>

#include "xla/base/system/path.hpp"
#endif
#if XLA_WINDOWS
#include <io.h>
#endif

namespace xla::sys {

enum class file_kind { none, regular, folder, other };

/// Kind and size of the file at a path, after links; `none` also where the system does not tell.
struct file_facts {
  file_kind kind = file_kind::none;
  std::uint64_t size = 0;  ///< of a regular file
};

#if XLA_POSIX || XLA_WASI
inline file_facts facts_of(const std::string& path) {
  struct stat s {};
  if (::stat(path.c_str(), &s) != 0) return {};
  if (S_ISDIR(s.st_mode)) return {file_kind::folder, 0};
  if (!S_ISREG(s.st_mode)) return {file_kind::other, 0};
  return {file_kind::regular, static_cast<std::uint64_t>(s.st_size)};
}

/// The target of a link, whether it exists or not.
inline std::string link_target(std::string path) {
  char next[4096];
  for (int links = 0; links < 40; ++links) {
    const auto length = ::readlink(path.c_str(), next, sizeof next);
    if (length <= 0 || length == sizeof next) break;
    const std::string target(next, static_cast<std::size_t>(length));
    path = target[0] == '/' ? target : path.substr(0, path.rfind('/') + 1) + target;
  }
  return path;
}

/// Renames a file, replacing the target atomically.
inline bool replace_file(const std::string& from, const std::string& to) {
  return std::rename(from.c_str(), to.c_str()) == 0;
}
inline bool remove_file(const std::string& path) { return ::unlink(path.c_str()) == 0; }
#else
inline file_facts facts_of(const std::string& path) {
  std::error_code problem;
  const auto file = path_of(path);
  const auto there = std::filesystem::status(file, problem);
  if (problem || !std::filesystem::exists(there)) return {};
  if (std::filesystem::is_directory(there)) return {file_kind::folder, 0};
  if (!std::filesystem::is_regular_file(there)) return {file_kind::other, 0};
  const std::uint64_t size = std::filesystem::file_size(file, problem);
  return problem ? file_facts{} : file_facts{file_kind::regular, size};
}

inline std::string link_target(const std::string& text) {
  std::filesystem::path path = path_of(text);
  std::error_code failed;
  for (int links = 0; links < 40 && std::filesystem::is_symlink(path, failed); ++links) {
    const auto next = std::filesystem::read_symlink(path, failed);
    if (failed) break;
    path = path.parent_path() / next;  // `next` alone if it is absolute
  }
  return text_of(path);
}

inline bool replace_file(const std::string& from, const std::string& to) {
  std::error_code failed;
  std::filesystem::rename(path_of(from), path_of(to), failed);
  if (failed) errno = failed.default_error_condition().value();
  return !failed;
}
inline bool remove_file(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::remove(path_of(path), ignored);
}
#endif

#if XLA_POSIX
/// A stream that writes to an open file; closes it where there is no memory for one.
inline std::FILE* stream_of(int handle) {
  std::FILE* const file = ::fdopen(handle, "wb");
  if (!file) ::close(handle);
  return file;
}
#endif

/// Opens an existing device, pipe or the like for writing. A pipe that nobody
/// reads is refused; waiting for a reader could last for ever.
inline std::FILE* open_in_place(const std::string& path) {
#if XLA_POSIX
  const int handle = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  if (handle < 0) return nullptr;
  ::fcntl(handle, F_SETFL, ::fcntl(handle, F_GETFL) & ~O_NONBLOCK);
  return stream_of(handle);
#else
  return open_file(path, "wb");
#endif
}

/// Creates a file that does not exist. If it replaces another, only its owner may read it until
/// inherit_mode() has copied that file's mode.
inline std::FILE* create_file(const std::string& path, [[maybe_unused]] bool replaces) {
#if XLA_POSIX
  const int handle = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                            replaces ? mode_t{0600} : mode_t{0666});
  if (handle < 0) return nullptr;
  return stream_of(handle);
#else
  return open_file(path, "wb");
#endif
}

/// Gives an open file the owner and the mode of another one.
inline bool inherit_mode([[maybe_unused]] std::FILE* file, [[maybe_unused]] const std::string& of) {
#if XLA_POSIX
  struct stat mine {
  }, other{};
  const int handle = ::fileno(file);
  if (::stat(of.c_str(), &other) != 0 || ::fstat(handle, &mine) != 0) return false;
  const bool other_owner = mine.st_uid != other.st_uid || mine.st_gid != other.st_gid;
  if (other_owner && ::fchown(handle, other.st_uid, other.st_gid) != 0) return false;
  return ::fchmod(handle, other.st_mode & 07777) == 0;
#else
  return true;
#endif
}

/// Waits until what was written is on disk.
inline bool sync_file([[maybe_unused]] std::FILE* file) {
#if XLA_POSIX
  return ::fsync(::fileno(file)) == 0;
#elif XLA_WINDOWS
  return ::_commit(::_fileno(file)) == 0;
#else
  return true;
#endif
}

/// Waits until the names in a file's folder are on disk, where the system can do that.
inline void sync_folder_of([[maybe_unused]] const std::string& file) {
#if XLA_POSIX
  const auto slash = file.rfind('/');
  const std::string folder = slash == file.npos ? "." : file.substr(0, slash + 1);
  const int handle = ::open(folder.c_str(), O_RDONLY | O_CLOEXEC);
  if (handle < 0) return;
  ::fsync(handle);
  ::close(handle);
#endif
}

}  // namespace xla::sys
