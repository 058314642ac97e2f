// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "xla/base/later.hpp"
#include "xla/run/arguments.hpp"
#include "xla/run/compiled_calls.hpp"
#include "xla/run/stages.hpp"
#include "xla/run/static_program.hpp"
#include "xla/transform/refuse.hpp"

namespace xla {

namespace detail {

template <class F, class... A>
struct printed_program {
  static constexpr auto graph = capture_graph<static_program<F, A...>::capacity, F, A...>();
};

/// A compiled function as the body of another one calls it: evaluated into the same graph.
template <class F>
struct inlined {
  template <class... A>
  constexpr auto operator()(A&&... a) const {
    using R = std::invoke_result_t<const F&, A&&...>;
    const F f = make_callable<F>();
    if constexpr (std::is_void_v<R>) {
      f(std::forward<A>(a)...);
    } else {
      typename result_of<bare<R>>::type result = f(std::forward<A>(a)...);
      return result;
    }
  }
};

template <class A>
concept compiled_module = requires { typename std::remove_cvref_t<A>::compiled_module_type; };

template <class A>
struct captured_as {
  using type = A;
};
template <class A>
  requires requires { typename std::remove_cvref_t<A>::inlined_type; }
struct captured_as<A> {
  using type = typename std::remove_cvref_t<A>::inlined_type&;
};
template <class A>
  requires is_part<std::remove_cvref_t<A>>
struct captured_as<A> {
  using tensor = same_const<std::remove_reference_t<A>, typename result_of<bare<A>>::type>;
  using type = std::conditional_t<std::is_lvalue_reference_v<A>, tensor&, tensor>;
};
/// An argument's type in the body that is captured.
template <class A>
using argument_of = typename captured_as<A>::type;

template <class F>
class compiled_base {
 public:
  explicit compiled_base(CompileOptions options) : calls_(std::move(options)) {}

 protected:
  template <class... A>
  auto run(A&&... a) {
    static_assert((!compiled_module<A> && ...),
                  "xla::compile: a compiled module cannot be an argument; pass the module itself "
                  "and call that in the body");
    using captured = static_program<F, argument_of<A&&>...>;
    using R = std::invoke_result_t<const F&, argument_of<A&&>...>;
    if constexpr (captured::why.empty()) {
      void* const arguments[] = {address_of(a)..., nullptr};
      handle results[captured::size.results + 1];
      calls_.run(made<captured, A...>, arguments, results);
      if constexpr (!std::is_void_v<R>) return unpack<typename result_of<bare<R>>::type>(results);
    } else {
      [[maybe_unused]] refusal_type<captured::why> sentence;
      if constexpr (!std::is_void_v<R>) return typename result_of<bare<R>>::type{};
    }
  }

  template <class... A>
  MemoryAnalysis analyse(A&&... a) {
    using captured = static_program<F, argument_of<A&&>...>;
    if constexpr (captured::why.empty()) {
      void* const arguments[] = {address_of(a)..., nullptr};
      return calls_.analyse(made<captured, A...>, arguments);
    } else {
      [[maybe_unused]] refusal_type<captured::why> sentence;
      return {};
    }
  }

 private:
  template <class Captured, class... A>
  static constexpr compiled_program made{
      Captured::kept.storage.view(), Captured::kernels.data(), Captured::kept.facts.data(),
      Captured::kept.sets_flags ? Captured::kept.flags.data() : nullptr,
      &argument_walk<std::remove_reference_t<A>...>::visit};

  template <class X>
  static void* address_of(X& x) {
    return const_cast<bare<X>*>(std::addressof(x));
  }

  template <class R>
  static R unpack(handle* results) {
    R result{};
    visit_tree(result,
               [&](auto& leaf, const tree_path&) {
                 using L = bare<decltype(leaf)>;
                 if constexpr (is_tensor<L>) static_cast<handle&>(leaf) = std::move(*results++);
                 if constexpr (is_state<L>)
                   machine_of<L>::place_cell(leaf, *results++, L::trainable);
               },
               {});
    return result;
  }

  later<F, basic_compiled_calls<void>> calls_;
};

}  // namespace detail

template <class F>
class Compiled;

namespace detail {
/// The call operator, in a class that constant evaluation may use: a body that is being compiled
/// sees only the address of the rest.
template <class F>
struct compiled_call {
  template <class... A>
  constexpr auto operator()(A&&... a) {
    if (__builtin_is_constant_evaluated()) return inlined<F>{}(std::forward<A>(a)...);
    return static_cast<Compiled<F>&>(*this).run(std::forward<A>(a)...);
  }
};
}  // namespace detail

/// A step function that the C++ compiler has evaluated on symbolic tensors. The first call with new
/// sizes specialises it; later calls run its executable. May be called from several threads. Called
/// in the body of another compiled function, as its argument or by the name of a global, it becomes
/// part of that one's graph.
template <class F>
class Compiled : detail::compiled_base<F>, public detail::compiled_call<F> {
 public:
  using inlined_type = detail::inlined<F>;
  using detail::compiled_base<F>::compiled_base;
  using detail::compiled_call<F>::operator();
  /// What a call with these arguments needs of memory. Runs nothing; specialises where that has not
  /// been done.
  template <class... A>
  MemoryAnalysis memory_analysis(A&&... a) {
    return this->analyse(std::forward<A>(a)...);
  }
  /// The graph of the function for arguments of these types, as text, at a stage of its way.
  template <class... A>
  std::string graph(Stage stage, A&&...) const {
    using printed = detail::printed_program<F, detail::argument_of<A&&>...>;
    return detail::print_stage<detail::later<F, void>>(printed::graph.view(), stage);
  }
  /// As an argument it brings nothing that changes.
  static constexpr auto xla_members() { return hana::make_tuple(); }

 private:
  friend detail::compiled_call<F>;
};

namespace detail {
struct refused_body {
  constexpr void operator()(auto&&...) const {}
};
struct call_module {
  static constexpr bool evaluates = true;
  template <class M, class... A>
  constexpr auto operator()(M& module, A&&... a) const {
    return module(std::forward<A>(a)...);
  }
};
}  // namespace detail

/// A module as a function of its inputs; refers to the module, which must outlive it.
template <class M>
class CompiledModule : detail::compiled_base<detail::call_module> {
 public:
  using compiled_module_type = M;
  CompiledModule(M& module, CompileOptions options)
      : detail::compiled_base<detail::call_module>(std::move(options)), module_(&module) {}
  template <class... A>
  auto operator()(A&&... a) {
    return this->run(*module_, std::forward<A>(a)...);
  }
  /// What a call with these arguments needs of memory. Runs nothing; specialises where that has not
  /// been done.
  template <class... A>
  MemoryAnalysis memory_analysis(A&&... a) {
    return this->analyse(*module_, std::forward<A>(a)...);
  }

 private:
  M* module_;
};

/// Compiles a step function (a lambda without captures, or a function object without data), or a
/// module, which is then referred to. Gradients are taken in its body: what it returns is the end
/// of the way for a backward() outside, which says so.
template <class F>
auto compile(F&& f, CompileOptions options = {}) {
  using Function = std::remove_cvref_t<F>;
  if constexpr (detail::described<Function>) {
    static_assert(std::is_lvalue_reference_v<F>,
                  "xla::compile: give a module that lives longer than the compiled function");
    return CompiledModule<std::remove_reference_t<F>>(f, std::move(options));
  } else {
    static_assert(std::is_empty_v<Function>,
                  "xla::compile: the function has captures or data; "
                  "pass what it uses as arguments");
    // Nothing more is said about a function that was refused.
    using Accepted = std::conditional_t<std::is_empty_v<Function>, Function, detail::refused_body>;
    return Compiled<Accepted>(std::move(options));
  }
}

}  // namespace xla
