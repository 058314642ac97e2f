// SPDX-License-Identifier: Apache-2.0
#pragma once

// State that DataParallel keeps for each device between calls, such as an optimizer. A program's
// loop function gets it as an argument.

#include <any>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "xla/base/error.hpp"
#include "xla/tensor/device.hpp"

namespace xla::parallel {

/// State that a loop function keeps from one call to the next, for each device: an optimizer,
/// counts.
class Context {
 public:
  explicit Context(const Device& device) : device_(device) {}
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const Device& device() const { return device_; }

  /// The object of this name; the first call makes it: `auto& optimizer =
  /// context.getattr_or("optimizer", [&] { return SGD{model, {.lr = 0.01}}; })`. Throws
  /// `xla::error` if that name has an object of another type.
  template <class Make>
  auto& getattr_or(const std::string& name, Make&& make) {
    using Kept = std::invoke_result_t<Make&>;
    static_assert(std::is_object_v<Kept>, "Context::getattr_or: the function returns a value");
    for (const auto& known : cached_)
      if (known.name == name) {
        if (const auto* const cached = std::any_cast<std::shared_ptr<Kept>>(&known.value))
          return **cached;
        throw runtime_error("Context::getattr_or: what is cached as \"" + name +
                            "\" has another type");
      }
    const std::shared_ptr<Kept> made(new Kept(make()));
    cached_.push_back({name, made});
    return *made;
  }

 private:
  struct entry {
    std::string name;
    std::any value;  // a shared_ptr of its type
  };
  Device device_;
  std::vector<entry> cached_;
};

}  // namespace xla::parallel
