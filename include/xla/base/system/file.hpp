// SPDX-License-Identifier: Apache-2.0
#pragma once

// What io::atomic_file needs of a system: a new file that takes over another's owner and mode, and
// writes that have reached the disk. Every function reports failure by its result and errno.

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "xla/base/system/open_file.hpp"
#include "xla/base/system/path.hpp"
#include "xla/base/system/platform.hpp"

#if XLA_POSIX
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#elif XLA_WINDOWS
#include <io.h>
#endif

namespace xla::sys {

/// Opens what is there and is no regular file, such as a device, to write to it. A pipe that nobody
/// reads is refused; waiting for a reader could last for ever.
inline std::FILE* open_in_place(const std::filesystem::path& path) {
#if XLA_POSIX
  const int handle = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  if (handle < 0) return nullptr;
  ::fcntl(handle, F_SETFL, ::fcntl(handle, F_GETFL) & ~O_NONBLOCK);
  std::FILE* const file = ::fdopen(handle, "wb");
  if (!file) ::close(handle);
  return file;
#else
  return open_file(text_of(path), "wb");
#endif
}

/// Creates a file that does not exist. What it replaces decides who may read it: only its owner,
/// until inherit_mode() has copied that file's mode.
inline std::FILE* create_file(const std::filesystem::path& path, [[maybe_unused]] bool replaces) {
#if XLA_POSIX
  const int handle = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                            replaces ? mode_t{0600} : mode_t{0666});
  if (handle < 0) return nullptr;
  std::FILE* const file = ::fdopen(handle, "wb");
  if (!file) ::close(handle);
  return file;
#else
  return open_file(text_of(path), "wb");
#endif
}

/// Gives an open file the owner and the mode of another one.
inline bool inherit_mode([[maybe_unused]] std::FILE* file,
                         [[maybe_unused]] const std::filesystem::path& of) {
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

/// Waits until a folder's names are on disk, where the system can do that.
inline void sync_folder([[maybe_unused]] const std::filesystem::path& folder) {
#if XLA_POSIX
  const int handle = ::open(folder.c_str(), O_RDONLY | O_CLOEXEC);
  if (handle < 0) return;
  ::fsync(handle);
  ::close(handle);
#endif
}

}  // namespace xla::sys
