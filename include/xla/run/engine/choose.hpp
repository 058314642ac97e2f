// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <string>

#include "xla/base/error.hpp"
#include "xla/base/join.hpp"
#include "xla/run/engine/engine.hpp"

namespace xla::detail {

template <class In>
[[gnu::cold]] bool engine_list<In>::add(engine& e) {
  e.before_ = engines.linked.load(std::memory_order_acquire);
  while (!engines.linked.compare_exchange_weak(e.before_, &e, std::memory_order_acq_rel)) continue;
  return true;
}

template <class In>
const engine* engine_list<In>::find(std::string_view name) {
  const engine* e = engines.linked.load(std::memory_order_acquire);
  while (e && e->name() != name) e = e->before_;
  return e;
}

template <class In>
const engine* engine_list<In>::named(std::string_view name) {
  const engine* const found = find(name);
  if (found || name == "plan") return found;
  std::string known = "plan";
  for (const engine* e = engines.linked.load(std::memory_order_acquire); e; e = e->before_)
    known = join({known, ", ", e->name()});
  throw runtime_error(join({"set_engine: this program has no engine ", name, ", but ", known,
                            "; link CMake's target of it: xla::interpreter, or xla::pjrt, for which "
                            "PJRT_DEVICE=CUDA makes pjrt:CUDA"}));
}

template <class In>
void engine_list<In>::choose(const engine* e) {
  engines.chosen.store(e, std::memory_order_release);
  engines.settled.store(true, std::memory_order_release);
}

template <class In>
void engine_list<In>::ask_environment() {
  const char* const name = std::getenv("XLA_ENGINE");
  choose(name && *name ? named(name) : engines.usual);
}

XLA_INSTANCE(struct engine_list<void>);

}  // namespace xla::detail
