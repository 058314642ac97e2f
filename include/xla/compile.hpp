// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "xla/base/later.hpp"
#include "xla/run/metrics.hpp"
#include "xla/run/signature_cache.hpp"
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
/// An argument's type in the body that is captured.
template <class A>
using argument_of = typename captured_as<A>::type;

template <class F>
class compiled_base {
 public:
  explicit compiled_base(CompileOptions options) : options_(std::move(options)) {}

 protected:
  template <class... A>
  auto run(A&&... a) {
    static_assert((!compiled_module<A> && ...),
                  "xla::compile: a compiled module cannot be an argument; pass the module itself "
                  "and call that in the body");
    using program_type = static_program<F, argument_of<A&&>...>;
    using R = std::invoke_result_t<const F&, argument_of<A&&>...>;
    if constexpr (program_type::why.empty()) {
      return run_program<program_type, R>(std::forward<A>(a)...);
    } else {
      [[maybe_unused]] refusal_type<program_type::why> sentence;
      if constexpr (!std::is_void_v<R>) return typename result_of<bare<R>>::type{};
    }
  }

  template <class... A>
  MemoryAnalysis analyse(A&&... a) {
    using program_type = static_program<F, argument_of<A&&>...>;
    if constexpr (!program_type::why.empty()) {
      [[maybe_unused]] refusal_type<program_type::why> sentence;
      return {};
    } else {
      static const program source = program_type::storage.view();
      auto& cache = cache_of<program_type>(source);
      later<F, bound_call> call;
      std::tuple<std::remove_reference_t<A>&...> arguments(a...);
      bind<A...>(call, arguments, std::index_sequence_for<A...>{});
      check_facts(program_type::facts.data(), call, arguments);
      later<F, executable>* e = cache.find(call);
      return memory_of((e ? e : specialize(cache, call, arguments))->get_plan());
    }
  }

 private:
  template <class Program, class R, class... A>
  auto run_program(A&&... a) {
    static const program source = Program::storage.view();
    auto& cache = cache_of<Program>(source);
    auto call = calls_.take();
    struct give_back {
      later<F, call_pool>& pool;
      later<F, std::unique_ptr<bound_call>>& call;
      ~give_back() { pool.give(std::move(call)); }
    } giver{calls_, call};
    std::tuple<std::remove_reference_t<A>&...> arguments(a...);
    auto work = [&] {
      bind<A...>(*call, arguments, std::index_sequence_for<A...>{});
      check_facts(Program::facts.data(), *call, arguments);
      later<F, executable>* e = cache.find(*call);
      static counter& cached = get_counter("CachedCompile");
      if (e) cached.add();
      else e = specialize(cache, *call, arguments);
      if (later<F, debug_log>::instance().level() > 1)
        report_execution(options_.name, cache.hash(e->get_plan()));
      if (plan_watch* w = watched_plans.load(std::memory_order_acquire); w && w->is_new(*w, *e))
        introduce(*w, *e, arguments);
      static metric& execute_time = get_metric("ExecuteTime");
      const timed sample(execute_time);
      execute(*e, *call);
    };
    if (source.count.writes > 0) {
      const std::lock_guard one_at_a_time(cache.state_lock());
      work();
    } else {
      work();
    }
    if constexpr (!std::is_void_v<R>) return unpack<typename result_of<bare<R>>::type>(*call);
  }

  template <class... A, std::size_t... I>
  static void bind(later<F, bound_call>& call,
                   std::tuple<std::remove_reference_t<A>&...>& arguments,
                   std::index_sequence<I...>) {
    (pairing<A...>::template check<I>(arguments), ...);
    later<F, call_binder> binder{call};
    (binder.argument(std::get<I>(arguments), static_cast<std::int64_t>(I)), ...);
  }

  template <class Tuple>
  later<F, executable>* specialize(later<F, signature_cache>& cache,
                                   const later<F, bound_call>& call, Tuple& arguments) {
    static counter& uncached = get_counter("UncachedCompile");
    static metric& compile_time = get_metric("CompileTime");
    const timed sample(compile_time);
    std::apply([&](auto&... v) { check_fixed_sizes(cache.source(), call, std::tie(v...)); },
               arguments);
    const later<F, std::vector<const plan*>> known = cache.plans();
    later<F, executable>* e = cache.add(call, options_);
    uncached.add();
    note_memory(options_.name, e->get_plan());
    if (later<F, debug_log>::instance().level() > 0) {
      auto name = [&](int slot) {
        return std::apply([&](auto&... v) { return slot_path(std::tie(v...), slot); }, arguments);
      };
      report({"compile", options_.name, cache.hash(e->get_plan()),
              what_changed(e->get_plan().slot_shapes, known, name)},
             e->get_plan());
    }
    return e;
  }

  template <class Tuple>
  void introduce(plan_watch& watch, const later<F, executable>& e, Tuple& arguments) {
    later<F, std::vector<std::string>> slots;
    for (int i = 0; i < e.get_plan().source.count.slots; ++i)
      slots.push_back(
          std::apply([&](auto&... v) { return slot_path(std::tie(v...), i); }, arguments));
    watch.introduce(watch, e, options_.name, slots);
  }

  template <class R>
  static R unpack(later<F, bound_call>& call) {
    R result{};
    std::size_t next = 0;
    visit_tree(result,
               [&](auto& leaf, const tree_path&) {
                 using L = bare<decltype(leaf)>;
                 if constexpr (is_tensor<L>) leaf.adopt(ref<impl>(call.results[next++]).take());
                 if constexpr (is_state<L>)
                   machine<typename L::value_type>::place_cell(leaf, call.results[next++],
                                                               L::trainable);
               },
               {});
    return result;
  }

  template <class Program>
  later<F, signature_cache>& cache_of(const program& source) {
    static const char key = 0;
    const std::lock_guard hold(lock_);
    for (auto& [k, cache] : caches_)
      if (k == &key) return *cache;
    prepare_for_plans<>();
    caches_.emplace_back(
        &key, std::make_unique<later<F, signature_cache>>(source, Program::kernels.data()));
    return *caches_.back().second;
  }

  CompileOptions options_;
  std::mutex lock_;
  later<F, std::vector<std::pair<const void*, std::unique_ptr<signature_cache>>>> caches_;
  later<F, call_pool> calls_;
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
    if (std::is_constant_evaluated()) return inlined<F>{}(std::forward<A>(a)...);
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
    return detail::print_stage(detail::printed_program<F, detail::argument_of<A&&>...>::graph,
                               stage);
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
/// module, which is then referred to.
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
