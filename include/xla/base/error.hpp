// SPDX-License-Identifier: Apache-2.0
#pragma once

// The exceptions that the library throws, all below xla::error, for programs to catch. What the
// compiler refuses is no exception: see refuse.hpp.

#ifndef __cpp_exceptions
#ifdef __clang__  // where a warning can end the compilation, before an error for each throw
#pragma clang diagnostic fatal "-W#warnings"
#warning xla reports errors by exceptions: compile without -fno-exceptions
#endif
#error xla reports errors by exceptions: compile without -fno-exceptions
#endif

#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "xla/base/text.hpp"

namespace xla {

/// The base of every exception of the library: catch (const xla::error& e). It does not derive from
/// std::exception, as out_of_memory would then contain two of them and catch (const
/// std::exception&) would be ambiguous. Every exception that is thrown also derives from
/// std::runtime_error or std::bad_alloc.
class error {
 public:
  virtual const char* what() const noexcept = 0;
  /// This exception as a standard one.
  operator const std::exception&() const noexcept { return standard(); }

 protected:
  error() = default;
  error(const error&) = default;
  error& operator=(const error&) = default;
  ~error() = default;

 private:
  virtual const std::exception& standard() const noexcept = 0;
};

/// An operation that cannot be done as asked; the base of the more specific errors below.
class runtime_error : public std::runtime_error, public error {
 public:
  using std::runtime_error::runtime_error;
  const char* what() const noexcept override { return std::runtime_error::what(); }

 private:
  const std::exception& standard() const noexcept override { return *this; }
};

/// Sizes that do not match. The message names the function, the shapes and the fix.
struct shape_error : runtime_error {
  using runtime_error::runtime_error;
};

/// An index out of range. It is thrown before anything is written.
struct index_error : runtime_error {
  using runtime_error::runtime_error;
};

/// A file that cannot be read, or that is not what it claims to be.
struct io_error : runtime_error {
  using runtime_error::runtime_error;
};

/// The error that ended a step on all replicas of a world. It names the replica that failed first
/// and its message.
class replica_error : public runtime_error {
 public:
  replica_error(const std::string& sentence, int ordinal, std::exception_ptr cause)
      : runtime_error(sentence), ordinal_(ordinal), cause_(std::move(cause)) {}
  int ordinal() const noexcept { return ordinal_; }
  /// The exception of that replica if it ran in this process, else nullptr.
  const std::exception_ptr& cause() const noexcept { return cause_; }

 private:
  int ordinal_;
  std::exception_ptr cause_;
};

/// The system has no memory left. The message names the function, the shape and the bytes. The
/// failed operation has had no effect.
class out_of_memory : public std::bad_alloc, public error {
 public:
  explicit out_of_memory(const detail::text& sentence) noexcept : why_(sentence) {}
  const char* what() const noexcept override { return why_.chars; }

 private:
  const std::exception& standard() const noexcept override { return *this; }
  detail::text why_;  // stored inline: there may be no memory for a string
};

}  // namespace xla
