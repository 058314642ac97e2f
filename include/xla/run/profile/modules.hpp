// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds the modules of a profile's steps, by the parameters that they use. It works on names alone;
// describe.hpp knows what a step reads and writes.

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "xla/base/list.hpp"
#include "xla/run/plan/block_names.hpp"
#include "xla/run/profile/data.hpp"

namespace xla::detail {

/// "argument 0.layers.3.q.weight" without its argument: "layers.3.q.weight"; empty for the argument
/// itself.
template <class = void>
[[gnu::cold]] std::string name_in_argument(const std::string& path) {
  const std::size_t dot = path.find('.');
  return dot == std::string::npos ? "" : path.substr(dot + 1);
}
/// "layers.3.q.weight" without its last part: "layers.3.q".
template <class = void>
[[gnu::cold]] std::string module_around(const std::string& name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string::npos ? "" : name.substr(0, dot);
}

/// The modules of parameters and of their optimizer state, by the paths of all cells of a call;
/// other slots have an empty path. "layers.3.q.weight.1" is the second tensor that an optimizer
/// keeps for "layers.3.q.weight".
template <class = void>
[[gnu::cold]] list<std::string> modules_of(const list<std::string>& paths) {
  list<std::string> names, all;
  for (const std::string& path : paths) names.push_back(name_in_argument(path));
  for (const std::string& name : names) {
    const std::string around = module_around(name);
    const bool numbered = !name.empty() && std::isdigit(static_cast<unsigned char>(name.back()));
    const bool kept = numbered && std::find(names.begin(), names.end(), around) != names.end();
    all.push_back(kept ? module_around(around) : around);
  }
  return all;
}

/// The modules whose parameters each step of a function uses. Steps without any belong to the
/// innermost module around the steps that they read and those that read them.
template <class>
class basic_step_modules {
 public:
  /// Records that step i uses a parameter of a module; an empty name is ignored.
  [[gnu::cold]] void note(std::size_t i, const std::string& module) {
    if (i >= own_.size()) own_.resize(i + 1);
    auto& own = own_[i];
    if (!module.empty() && std::find(own.begin(), own.end(), module) == own.end())
      own.push_back(module);
  }
  /// The innermost module that contains all.
  [[gnu::cold]] std::string whole() const {
    known all;
    for (const auto& modules : own_) add(all, whole(modules));
    return all.value_or("");
  }
  [[gnu::cold]] void name(std::vector<ProfileStep>& steps) {
    own_.resize(steps.size());
    std::vector<known> before(steps.size()), after(steps.size());
    for (std::size_t i = 0; i < steps.size(); ++i) {
      before[i] = whole(own_[i]);
      if (own_[i].empty())
        for (int from : steps[i].after) add(before[i], before[static_cast<std::size_t>(from)]);
    }
    for (std::size_t i = steps.size(); i-- > 0;) {
      if (!own_[i].empty()) after[i] = whole(own_[i]);
      for (int from : steps[i].after) add(after[static_cast<std::size_t>(from)], after[i]);
    }
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (!own_[i].empty()) steps[i].module = listed(own_[i]);
      else if (before[i] && after[i]) steps[i].module = module_of_both(*before[i], *after[i]);
    }
  }

 private:
  using known = std::optional<std::string>;  ///< empty if unknown
  [[gnu::cold]] static void add(known& to, const known& module) {
    if (module) to = to ? module_of_both(*to, *module) : *module;
  }
  [[gnu::cold]] static known whole(const std::vector<std::string>& modules) {
    known all;
    for (const std::string& m : modules) add(all, m);
    return all;
  }
  /// "layers.0.down +1": the first, and the number of others.
  [[gnu::cold]] static std::string listed(const std::vector<std::string>& modules) {
    if (modules.size() == 1) return modules[0];
    return modules[0] + " +" + std::to_string(modules.size() - 1);
  }

  std::vector<std::vector<std::string>> own_;
};
using step_modules = basic_step_modules<void>;

}  // namespace xla::detail
