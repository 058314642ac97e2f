// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <type_traits>

#include "xla/base/instance.hpp"
#include "xla/base/later.hpp"
#include "xla/run/state/engines.hpp"

namespace xla {
namespace detail {

template <class>
class basic_executable;
template <class>
struct basic_sized_program;
template <class>
class list;
struct op_info;
struct program;
struct shape;

/// What runs programs in the stead of this library's own plans. A program that it gets has an op a
/// step, after simplify() and share(): nothing is fused, nothing is computed twice.
class engine {
 public:
  /// What set_engine() calls it.
  virtual std::string_view name() const = 0;
  /// The first op of a program that it cannot run; nullptr: it can run all.
  virtual const op_info* lacks(const program& ops) const = 0;
  /// Why it cannot run that op, and what can be done about it; empty: it says no more.
  virtual std::string_view why(const op_info& /*lacked*/) const { return {}; }
  /// Something that runs a program at its sizes.
  virtual std::unique_ptr<basic_executable<void>> make(basic_sized_program<void>&& p) const = 0;

  // Here, so that programs without an engine have nothing of it: run/engine/common.hpp defines
  // them.

  /// Something that runs a compiled function's program; an error, by name, if it cannot.
  virtual std::unique_ptr<basic_executable<void>> compile(const program* ops, list<shape> slots,
                                                          const list<char>& absent,
                                                          bool winograd) const = 0;
  /// Counts an execution, or that a graph ran as planned, as this engine lacks an op.
  virtual void note_run() const = 0;
  virtual void note_fallback(const op_info& lacked) const = 0;
  /// Whether it runs the ops of eager mode too, each as a program of its own.
  virtual bool runs_single_ops() const { return false; }

  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;

 protected:
  constexpr engine() = default;
  ~engine() = default;

 private:
  template <class>
  friend struct engine_list;
  engine* before_ = nullptr;
};

/// The engines of the program; run/engine/choose.hpp defines it.
template <class>
struct engine_list {
  /// Makes an engine known, which has static storage.
  static bool add(engine& e);
  /// The one of that name, if there is one.
  static const engine* find(std::string_view name);
  /// The same; nullptr for "plan", and an error for a name that is none.
  [[gnu::cold]] static const engine* named(std::string_view name);
  [[gnu::cold]] static void choose(const engine* e);
  [[gnu::cold]] static void ask_environment();
};

/// What runs programs now; nullptr: plans.
template <class In = void>
const engine* chosen_engine() {
  if (!engines.settled.load(std::memory_order_acquire)) engine_list<In>::ask_environment();
  return engines.chosen.load(std::memory_order_acquire);
}

}  // namespace detail

/// What runs a compiled function, as CompileOptions::engine says: by default what set_engine() or
/// the environment has chosen when it is called.
class Engine {
 public:
  constexpr Engine() = default;
  /// One of set_engine()'s, by name; throws what that throws.
  template <class Name>
    requires std::is_convertible_v<const Name&, std::string_view>
  Engine(const Name& name)
      : of_(detail::engine_list<later<Name, void>>::named(name)), given_(true) {}
  explicit Engine(const detail::engine& e) : of_(&e), given_(true) {}

  /// What runs programs now; nullptr: plans.
  template <class In = void>
  const detail::engine* get() const {
    return given_ ? of_ : detail::chosen_engine<In>();
  }

 private:
  const detail::engine* of_ = nullptr;
  bool given_ = false;
};

/// Which engine runs compiled functions and traced graphs from now on, in all threads: "plan", this
/// library's own, or one that the program links, as "interpreter" (CMake's target
/// xla::interpreter). Where there is none of that name, an error lists those that there are.
/// XLA_ENGINE in the environment names the one to begin with. Ops in eager mode run one by one, by
/// an engine that runs_single_ops() as programs of its own. What an engine lacks is told by name
/// where a compiled function needs it, and runs as planned in traced mode. Counters:
/// `Engine::<name>`, and `fallback::<name>::<op>` (`fallback::<op>` of plugins, as in PyTorch/XLA).
template <class = void>
constexpr void set_engine(std::string_view name) {
  if (!__builtin_is_constant_evaluated())
    detail::engine_list<void>::choose(detail::engine_list<void>::named(name));
  if (__builtin_is_constant_evaluated())
    throw std::logic_error("xla: a compiled body has no engine: call set_engine() outside");
}
/// The same of one that is at hand: set_engine(xla::pjrt("CPU")).
template <std::same_as<Engine> E>
void set_engine(E e) {
  detail::engine_list<later<E, void>>::choose(e.get());
}

/// The name of the engine that runs compiled functions and traced graphs.
template <class In = void>
std::string_view engine_name() {
  const detail::engine* const e = detail::chosen_engine<In>();
  return e ? e->name() : "plan";
}

}  // namespace xla

#if defined(XLA_INTERPRETER)
#include "xla/run/engine/interpreter.hpp"
#endif

#if XLA_RUNTIME_HERE
#include "xla/run/engine/choose.hpp"
#endif
