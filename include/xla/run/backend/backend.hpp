// SPDX-License-Identifier: Apache-2.0
#pragma once

// The interface of a backend, and the public functions that choose one. The native backend does not
// implement it: it runs if no other is chosen.

#include <concepts>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <type_traits>

#include "xla/base/dependent.hpp"
#include "xla/base/instance.hpp"
#include "xla/run/state/context.hpp"

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

/// Runs programs in place of the native backend's plans. A program has one op per step, after the
/// passes simplify and share: nothing is fused, and nothing is computed twice.
class backend {
 public:
  /// The name for set_backend().
  virtual std::string_view name() const = 0;
  /// Whether it has this name or alias.
  virtual bool answers_to(std::string_view called) const { return called == name(); }
  /// The first op of a program that it cannot run; nullptr if it can run the program.
  virtual const op_info* lacks(const program& ops) const = 0;
  /// Why it cannot run that op, and what to do about it; empty if there is nothing to add.
  virtual std::string_view why(const op_info& /*lacked*/) const { return {}; }
  /// Makes an executable of a program at given sizes.
  virtual std::unique_ptr<basic_executable<void>> make(basic_sized_program<void>&& p) const = 0;

  // Defined in run/backend/common.hpp, so that programs without another backend contain no code for
  // them.

  /// An executable for a compiled function's program; throws with the op's name if it cannot run
  /// it.
  virtual std::unique_ptr<basic_executable<void>> compile(const program* ops, list<shape> slots,
                                                          const list<char>& absent,
                                                          bool winograd) const = 0;
  /// Counts an execution, or a graph that the native backend ran because this one lacks an op.
  virtual void note_run() const = 0;
  virtual void note_fallback(const op_info& lacked) const = 0;
  /// Whether it also runs the ops of eager mode, each as a program of its own.
  virtual bool runs_single_ops() const { return false; }

  backend(const backend&) = delete;
  backend& operator=(const backend&) = delete;

 protected:
  constexpr backend() = default;
  ~backend() = default;

 private:
  template <class>
  friend struct backend_list;
  backend* before_ = nullptr;
};

/// The backends of the program; run/backend/choose.hpp defines it.
template <class>
struct backend_list {
  /// Registers a backend of static storage duration.
  static bool add(backend& e);
  /// The backend of that name, if there is one.
  static const backend* find(std::string_view name);
  /// The same; nullptr for "native", and an error for an unknown name.
  [[gnu::cold]] static const backend* named(std::string_view name);
  [[gnu::cold]] static void choose(const backend* e);
  [[gnu::cold]] static void ask_environment();
};

/// The current backend; nullptr: the native one.
template <class In = void>
const backend* chosen_backend() {
  if (!backends.settled.load(std::memory_order_acquire)) backend_list<In>::ask_environment();
  return backends.chosen.load(std::memory_order_acquire);
}

}  // namespace detail

/// The backend of a compiled function, for CompileOptions::backend: by default the one that
/// set_backend() or the environment has chosen at the time of the call.
class Backend {
 public:
  constexpr Backend() = default;
  /// By a name of set_backend(); throws like that.
  template <class Name>
    requires std::is_convertible_v<const Name&, std::string_view>
  Backend(const Name& name)
      : of_(detail::backend_list<dependent<Name, void>>::named(name)), given_(true) {}
  explicit Backend(const detail::backend& e) : of_(&e), given_(true) {}

  /// The backend that this denotes now; nullptr: the native one.
  template <class In = void>
  const detail::backend* get() const {
    return given_ ? of_ : detail::chosen_backend<In>();
  }

 private:
  const detail::backend* of_ = nullptr;
  bool given_ = false;
};

/// Sets the backend that runs compiled functions and traced graphs from now on, in all threads:
/// "native", this library's own, or one that the program links, such as "interpreter" (CMake's
/// target xla::interpreter) or "openxla" (xla::pjrt). An unknown name is an error that lists the
/// known ones. XLA_BACKEND in the environment sets the initial one. Ops in eager mode run one by
/// one; a backend that runs_single_ops() runs them as programs of their own. If a backend lacks an
/// op, a compiled function throws an error that names it, and a traced graph runs on the native
/// backend. Counters: `Backend::<name>`, and `fallback::<name>::<op>` (`fallback::<op>` for
/// plugins, as in PyTorch/XLA).
template <class = void>
constexpr void set_backend(std::string_view name) {
  if (!__builtin_is_constant_evaluated())
    detail::backend_list<void>::choose(detail::backend_list<void>::named(name));
  if (__builtin_is_constant_evaluated())
    throw std::logic_error("xla: a compiled body has no backend: call set_backend() outside");
}
/// The same for a backend object: set_backend(xla::pjrt("CPU")).
template <std::same_as<Backend> E>
void set_backend(E e) {
  detail::backend_list<dependent<E, void>>::choose(e.get());
}

/// The name of the backend that runs compiled functions and traced graphs.
template <class In = void>
std::string_view backend_name() {
  const detail::backend* const e = detail::chosen_backend<In>();
  return e ? e->name() : "native";
}

}  // namespace xla

#if defined(XLA_INTERPRETER)
#include "xla/run/backend/interpreter.hpp"
#endif

#if XLA_RUNTIME_HERE
#include "xla/run/backend/choose.hpp"
#endif
