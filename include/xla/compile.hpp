// SPDX-License-Identifier: Apache-2.0
#pragma once

// compile(): a function whose body is captured, differentiated and lowered in the C++ compiler, or
// a module's call. What a call does at run time is in run/call/. Programs include it by xla.hpp.

#include <memory>
#include <string>
#include <utility>

#include "xla/base/dependent.hpp"
#include "xla/run/backend/backend.hpp"
#include "xla/run/call/arguments.hpp"
#include "xla/run/call/compiled_calls.hpp"
#include "xla/run/call/stages.hpp"
#include "xla/run/call/static_program.hpp"
#include "xla/run/trace/autocast.hpp"
#include "xla/transform/callable.hpp"

namespace xla {

namespace detail {

template <class F, class... A>
struct printed_program {
  static constexpr auto graph = capture_graph<static_program<F, A...>::capacity, F, A...>();
};

/// A compiled function that the body of another one calls: its body is captured into the caller's
/// graph.
template <class F>
struct inlined {
  template <class... A>
  constexpr auto operator()(A&&... a) const {
    using R = std::invoke_result_t<const F&, A&&...>;
    const F f = make_callable<F>();
    const product_scope as_compiled(graph_of(a...), precision::float32);
    if constexpr (std::is_void_v<R>) {
      f(std::forward<A>(a)...);
    } else {
      typename result_of<bare<R>>::type result = f(std::forward<A>(a)...);
      return result;
    }
  }
};

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
/// The type of an argument in the captured body. It is the caller's, except that a compiled
/// function arrives as `inlined`, and a part of a tensor (x[0]) as a tensor.
/// An argument's type in the body that is captured.
template <class A>
using argument_of = typename captured_as<A>::type;

template <class F>
inline constexpr text body_refusal =
    "xla::compile: the body does not compile with these arguments: fix the error above; if it is "
    "about the call itself, write constexpr auto operator()(...) const";

/// The return type of a refused call, so that the refusal is the only error. Most functions return
/// their loss, a number.
using refused_result = Tensor<float, 0>;

/// Stops the build by compiling the body as an ordinary call, so that the C++ compiler reports the
/// errors in it.
template <class F, class... A>
constexpr refused_result refuse_body() {
  using R [[maybe_unused]] = decltype(std::declval<const F&>()(std::declval<A>()...));
  refuse<body_refusal<F>>();
  return {};
}

/// What Compiled and CompiledModule share: captures the function for the argument types of a call,
/// and hands the call to calls_, which runs it.
template <class F>
class compiled_base {
 public:
  explicit compiled_base(CompileOptions options) : calls_(std::move(options)) {}

 protected:
  template <class... A>
  auto run(A&&... a) {
    using captured = static_program<F, argument_of<A&&>...>;
    using R = std::invoke_result_t<const F&, argument_of<A&&>...>;
    if constexpr (captured::why.empty()) {
      void* const arguments[] = {address_of(a)..., nullptr};
      handle results[captured::size.results + 1];
      use_rounded_kernels<captured>();
      calls_.run(made<captured, A...>, arguments, results);
      if constexpr (!std::is_void_v<R>) return unpack<typename result_of<bare<R>>::type>(results);
    } else {
      refuse<captured::why>();
      if constexpr (!std::is_void_v<R>) return typename result_of<bare<R>>::type{};
    }
  }

  template <class... A>
  MemoryAnalysis analyse(A&&... a) {
    using captured = static_program<F, argument_of<A&&>...>;
    if constexpr (captured::why.empty()) {
      void* const arguments[] = {address_of(a)..., nullptr};
      use_rounded_kernels<captured>();
      return calls_.analyse(made<captured, A...>, arguments);
    } else {
      refuse<captured::why>();
      return {};
    }
  }

  template <class... A>
  std::string print(A&&... a) {
    using captured = static_program<F, argument_of<A&&>...>;
    if constexpr (captured::why.empty()) {
      void* const arguments[] = {address_of(a)..., nullptr};
      use_rounded_kernels<captured>();
      return calls_.print(made<captured, A...>, arguments);
    } else {
      refuse<captured::why>();
      return {};
    }
  }

 private:
  template <class Captured>
  static void use_rounded_kernels() {
    if constexpr (Captured::result.rounds_matmul) kernel::use_rounded_matmul<dependent<F, void>>();
    if constexpr (Captured::result.rounds_convolution)
      kernel::use_rounded_convolutions<dependent<F, void>>();
    if constexpr (Captured::result.rounds_attention)
      kernel::use_rounded_attention<dependent<F, void>>();
  }
  template <class Captured, class... A>
  static constexpr compiled_program made{
      Captured::source,
      Captured::kernels.data(),
      detail::keeps_backend_graphs ? &Captured::ops : nullptr,
      Captured::result.facts.data(),
      Captured::result.sets_flags ? Captured::result.flags.data() : nullptr,
      &arguments_of<bare<A>...>::visit,
      Captured::result.forward.data(),
      Captured::result.forward_lists.data(),
      static_cast<int>(Captured::result.forward.size())};

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
                   machine_of<L>::create_cell(leaf, *results++, L::trainable);
               },
               {});
    return result;
  }

  dependent<F, basic_compiled_calls<void>> calls_;
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
    if constexpr (constexpr auto& why = call_refusal<F, argument_of<A&&>...>; !why.empty()) {
      refuse<why>();
      return refused_result{};
    } else if constexpr (!std::is_invocable_v<const F&, argument_of<A&&>...>) {
      return refuse_body<F, argument_of<A&&>...>();
    } else {
      if (__builtin_is_constant_evaluated()) return inlined<F>{}(std::forward<A>(a)...);
      return static_cast<Compiled<F>&>(*this).run(std::forward<A>(a)...);
    }
  }
};
}  // namespace detail

/// A step function that the C++ compiler has evaluated on symbolic tensors. The first call with new
/// sizes specialises it; later calls run its executable. Several threads may call it. When the body
/// of another compiled function calls it, as an argument or as a global, it becomes part of that
/// function's graph.
template <class F>
class Compiled : detail::compiled_base<F>, public detail::compiled_call<F> {
 public:
  using inlined_type = detail::inlined<F>;
  using detail::compiled_base<F>::compiled_base;
  using detail::compiled_call<F>::operator();
  /// The memory that a call with these arguments needs. Specialises the function if necessary, and
  /// runs nothing.
  template <class... A>
  MemoryAnalysis memory_analysis(A&&... a) {
    if constexpr (constexpr auto& why = refusal<A&&...>; !why.empty()) detail::refuse<why>();
    else return this->analyse(std::forward<A>(a)...);
    return {};
  }
  /// The graph of the function for arguments of these types, as text: as captured, or after the
  /// passes.
  template <class... A>
  std::string graph(Stage stage, A&&...) const {
    if constexpr (constexpr auto& why = refusal<A&&...>; !why.empty()) {
      detail::refuse<why>();
      return {};
    } else {
      using printed = detail::printed_program<F, detail::argument_of<A&&>...>;
      return detail::print_stage<dependent<F, void>>(printed::graph.view(), stage,
                                                     detail::passes_of<F>);
    }
  }
  /// The steps that run for these arguments, as text: with sizes, layouts, and the kernels'
  /// algorithms. Specialises the function if necessary, and runs nothing.
  template <class... A>
  std::string graph(Stage::Planned, A&&... a) {
    if constexpr (constexpr auto& why = refusal<A&&...>; !why.empty()) detail::refuse<why>();
    else return this->print(std::forward<A>(a)...);
    return {};
  }
  /// As an argument of another compiled function it has no tensors to bind.
  static constexpr auto xla_members() { return hana::make_basic_tuple(); }
  static constexpr auto xla_plain_members() {
    return hana::make_basic_tuple(detail::make_member("", [](auto& all) -> auto& { return all; }));
  }

 private:
  friend detail::compiled_call<F>;
  template <class... A>
  static constexpr const detail::text& refusal = detail::call_refusal<F, detail::argument_of<A>...>;
};

namespace detail {
/// What compile() returns for a function that it has refused. It accepts any call, so that no
/// second error follows.
struct refused_function {
  constexpr refused_result operator()(auto&&...) const { return {}; }
  MemoryAnalysis memory_analysis(auto&&...) const { return {}; }
  std::string graph(auto&&...) const { return {}; }
};
/// A function whose name is known, as a function object.
template <auto Function>
struct named_function {
  template <class... A>
    requires std::is_invocable_v<decltype(Function), A...>
  constexpr decltype(auto) operator()(A&&... a) const {
    return Function(std::forward<A>(a)...);
  }
};
struct call_module {
  static constexpr bool evaluates = true;
  template <class M, class... A>
  constexpr auto operator()(M& module, A&&... a) const {
    return module(std::forward<A>(a)...);
  }
};
}  // namespace detail

/// A module as a function of its inputs. It refers to the module, which must outlive it.
template <class M, class Call = detail::call_module>
class CompiledModule : detail::compiled_base<Call> {
 public:
  using compiled_module_type = M;
  CompiledModule(M& module, CompileOptions options)
      : detail::compiled_base<Call>(std::move(options)), module_(&module) {}
  M& module() const { return *module_; }
  template <class... A>
  auto operator()(A&&... a) {
    if constexpr (constexpr auto& why = refusal<A&&...>; !why.empty()) {
      detail::refuse<why>();
      return detail::refused_result{};
    } else if constexpr (!std::is_invocable_v<const Call&, M&, detail::argument_of<A&&>...>) {
      return detail::refuse_body<Call, M&, detail::argument_of<A&&>...>();
    } else {
      return this->run(*module_, std::forward<A>(a)...);
    }
  }
  /// The memory that a call with these arguments needs. Specialises the module if necessary, and
  /// runs nothing.
  template <class... A>
  MemoryAnalysis memory_analysis(A&&... a) {
    if constexpr (constexpr auto& why = refusal<A&&...>; !why.empty()) detail::refuse<why>();
    else return this->analyse(*module_, std::forward<A>(a)...);
    return {};
  }
  /// The steps that run for these arguments, as text: with sizes, layouts, and the kernels'
  /// algorithms. Specialises the module if necessary, and runs nothing.
  template <class... A>
  std::string graph(Stage::Planned, A&&... a) {
    if constexpr (constexpr auto& why = refusal<A&&...>; !why.empty()) detail::refuse<why>();
    else return this->print(*module_, std::forward<A>(a)...);
    return {};
  }

 private:
  template <class... A>
  static constexpr const detail::text& refusal = detail::call_refusal<M, detail::argument_of<A>...>;
  M* module_;
};

namespace detail {
/// Stops the build if F cannot be compiled; returns whether it was accepted.
template <class F, bool Lvalue>
constexpr bool compilable() {
  constexpr bool is_function = std::is_function_v<std::remove_pointer_t<F>>;
  constexpr bool is_pointer = !is_function && pointer_like<F>;
  static_assert(!is_function,
                "xla::compile: write xla::compile<train_step>() for a function train_step, which "
                "has to be constexpr; or give a lambda");
  static_assert(!is_pointer, "xla::compile: give the module itself, xla::compile(*model)");
  static_assert(!std::is_member_pointer_v<F>,
                "xla::compile: give the module itself; its operator() is compiled");
  static_assert(!is_tensor<F>,
                "xla::compile: give the function, not its result: auto step = xla::compile(f); "
                "then step(arguments...)");
  static_assert(!optimizer_like<F>,
                "xla::compile: give a step function that takes the optimizer as an argument");
  constexpr bool is_kind = !is_function && !is_pointer && !std::is_member_pointer_v<F> &&
                           !is_tensor<F> && !optimizer_like<F>;
  if constexpr (is_kind && described<F>) {
    static_assert(Lvalue,
                  "xla::compile: give a module that lives longer than the compiled function");
    check_fit<F>();
    return Lvalue && fits<F>;
  } else if constexpr (is_kind) {
    static_assert(std::is_empty_v<F>,
                  "xla::compile: the function has captures or data; pass what it uses as arguments "
                  "(a module needs XLA_MODULE(member, ...), where it is public), or write "
                  "xla::trace(f), which takes any function");
  }
  return is_kind && std::is_empty_v<F>;
}
}  // namespace detail

namespace detail {
template <class F, Passes Wanted>
using made_with = std::conditional_t<Wanted == Passes{}, F, compiled_with<F, Wanted>>;

template <Passes Wanted, class F>
auto compile_with(F&& f, CompileOptions options) {
  using Function = std::remove_cvref_t<F>;
  if constexpr (is_autocasted_module<Function>) {
    using M = std::remove_pointer_t<decltype(f.module)>;
    if constexpr (!compilable<std::remove_const_t<M>, true>()) return refused_function{};
    else
      return CompiledModule<M, made_with<autocasted<call_module>, Wanted>>(*f.module,
                                                                           std::move(options));
  } else if constexpr (!compilable<Function, std::is_lvalue_reference_v<F>>()) {
    return refused_function{};
  } else if constexpr (described<Function>) {
    return CompiledModule<std::remove_reference_t<F>, made_with<call_module, Wanted>>(
        f, std::move(options));
  } else {
    return Compiled<made_with<Function, Wanted>>(std::move(options));
  }
}
}  // namespace detail

/// Compiles a step function (a lambda without captures, or a function object without data), or a
/// module, which it refers to. The result can be moved but not copied.
///
/// With backward() and optimizer.step() in its body a step is one graph, which is the fast way.
/// What a function without them returns can also be differentiated outside, as in PyTorch:
///   auto predict = xla::compile(model);
///   loss_fn(predict(x), target).backward();
///   optimizer.step();
/// Gradients of parameters and of tensors that require them equal those of an eager call to the
/// bit. backward() runs the body's graph again, on the call's arguments and random numbers: op by
/// op, or as a part of the pending graph if ops are recorded. Until then the results keep the
/// arguments alive, except in no_grad(). A program that uses headers alone defines
/// XLA_COMPILED_BACKWARD=1 in all its units for this, which adds the ops' gradients to them. A
/// module is captured for evaluation. It refuses a call in training mode if dropout or batch norm
/// make a difference; for training write xla::compile([](auto& model, auto& x) { return model(x);
/// }).
///
/// backward() in a body gives gradients to parameters and to those arguments that require them:
/// call x.requires_grad_() before the call or in the body, and x.grad() after it. A call whose
/// tensors require no gradients computes none for them, and is specialised separately. If the body
/// reads or sets x.grad(), an argument that requires no gradient is a runtime_error. So is one that
/// was computed from tensors that require gradients, because those do not leave the body.
template <class F>
auto compile(F&& f, CompileOptions options = {}) {
  return detail::compile_with<Passes{}>(std::forward<F>(f), std::move(options));
}
/// The same for a constexpr function: auto step = xla::compile<train_step>();
template <auto Function>
  requires(!std::is_class_v<decltype(Function)>)
auto compile(CompileOptions options = {}) {
  return Compiled<detail::named_function<Function>>(std::move(options));
}
/// The same without some of the passes: xla::compile<xla::tags::without<"share">>(train_step).
template <Passes Wanted, class F>
auto compile(F&& f, CompileOptions options = {}) {
  return detail::compile_with<Wanted>(std::forward<F>(f), std::move(options));
}
template <Passes Wanted, auto Function>
auto compile(CompileOptions options = {}) {
  return detail::compile_with<Wanted>(detail::named_function<Function>{}, std::move(options));
}

template <class F, class Options>
  requires(!std::is_convertible_v<Options, CompileOptions>)
auto compile(F&&, Options&&) {
  static_assert(std::is_convertible_v<Options, CompileOptions>,
                "xla::compile: options are written by name: {.name = \"step\"}");
  return detail::refused_function{};
}

}  // namespace xla
