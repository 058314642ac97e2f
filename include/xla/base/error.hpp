// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>

namespace xla {

/// The base of every exception that the library throws.
struct error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Sizes that do not fit: names the function, the shapes and the fix.
struct shape_error : error {
  using error::error;
};

/// An index outside its range, found before any state is touched.
struct index_error : error {
  using error::error;
};

/// A file that cannot be read, or is not what it claims to be.
struct io_error : error {
  using error::error;
};

}  // namespace xla
