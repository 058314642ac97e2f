// SPDX-License-Identifier: Apache-2.0
#pragma once

// Defines how a backend is found by name or by the environment. backend.hpp includes it where the
// run time is compiled.

#include <cstdlib>
#include <string>

#include "xla/base/error.hpp"
#include "xla/base/text.hpp"
#include "xla/run/backend/backend.hpp"

namespace xla::detail {

template <class In>
[[gnu::cold]] bool backend_list<In>::add(backend& e) {
  e.before_ = backends.linked.load(std::memory_order_acquire);
  while (!backends.linked.compare_exchange_weak(e.before_, &e, std::memory_order_acq_rel)) continue;
  return true;
}

template <class In>
const backend* backend_list<In>::find(std::string_view name) {
  const backend* e = backends.linked.load(std::memory_order_acquire);
  while (e && !e->answers_to(name)) e = e->before_;
  return e;
}

template <class In>
const backend* backend_list<In>::named(std::string_view name) {
  const backend* const found = find(name);
  if (found || name == "native") return found;
  std::string known = "native";
  for (const backend* e = backends.linked.load(std::memory_order_acquire); e; e = e->before_)
    known = join({known, ", ", e->name()});
  throw runtime_error(
      join({"set_backend: this program has no backend ", name, "; it has ", known,
            "; link CMake's target of it: xla::interpreter, or xla::pjrt, for which "
            "PJRT_DEVICE=CUDA makes pjrt:CUDA"}));
}

template <class In>
void backend_list<In>::choose(const backend* e) {
  backends.chosen.store(e, std::memory_order_release);
  backends.settled.store(true, std::memory_order_release);
}

template <class In>
void backend_list<In>::ask_environment() {
  const char* const name = std::getenv("XLA_BACKEND");
  choose(name && *name ? named(name) : backends.usual);
}

XLA_INSTANCE(struct backend_list<void>);

}  // namespace xla::detail
