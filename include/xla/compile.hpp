// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <string>

#include "xla/kernel/map.hpp"
#include "xla/kernel/row.hpp"
#include "xla/run/call.hpp"
#include "xla/run/metrics.hpp"
#include "xla/run/stages.hpp"
#include "xla/transform/refuse.hpp"

namespace xla {

/// How a function is compiled.
struct CompileOptions {
  std::string name = "step";  ///< in the metrics report and in XLA_DEBUG's output
  int max_signatures = 64;    ///< different argument shapes that are specialised
};

namespace detail {

template <const auto& Storage, int Index>
struct key_at {
  static constexpr distinct_key where = Storage.keys[Index];
  static constexpr auto value = [] {
    kernel::region_key<where.count> k{};
    for (int i = 0; i < where.count; ++i) k.words[i] = Storage.words[where.first + i];
    return k;
  }();
};

template <kernel::region_key Key, bool Row>
constexpr region_kernel make_region_kernel() {
  if constexpr (Row)
    return {nullptr, &kernel::row_kernel<Key>::run, &kernel::row_kernel<Key>::scratch_bytes};
  else return {&kernel::map_kernel<Key>::run, nullptr, nullptr};
}

/// A step function at given argument types, evaluated by the C++ compiler: its program as static
/// data, and one kernel for each distinct region.
template <class F, class... A>
struct static_program {
  template <int Capacity>
  static constexpr captured<Capacity> attempt = capture<Capacity, F, A...>();

  template <int Capacity>
  static constexpr int fitting() {
    if constexpr (attempt<Capacity>.overflow) return fitting<4 * Capacity>();
    else return Capacity;
  }
  static constexpr int capacity = fitting<first_capacity<A...>()>();
  static constexpr text why = attempt<capacity>.refused.why;

  static constexpr auto storage = [] {
    constexpr const auto& from = attempt<capacity>;
    program_storage<from.count> s;
    auto copy = [](auto* to, const auto* source, int n) {
      for (int i = 0; i < n; ++i) to[i] = source[i];
    };
    constexpr program::sizes n = from.count;
    copy(s.values, from.values, n.values);
    copy(s.steps, from.steps, n.steps);
    copy(s.inputs, from.inputs, n.inputs);
    copy(s.outputs, from.outputs, n.outputs);
    copy(s.words, from.words, n.words);
    copy(s.keys, from.keys, n.keys);
    copy(s.writes, from.writes, n.writes);
    copy(s.results, from.results, n.results);
    copy(s.slots, from.slots, n.slots);
    copy(s.symbols, from.symbols, n.symbols);
    copy(s.equalities, from.equalities, n.equalities);
    copy(s.spaces, from.spaces, n.spaces);
    return s;
  }();

  static constexpr int fact_count = attempt<capacity>.fact_count;
  static constexpr auto facts = [] {
    std::array<double, static_cast<std::size_t>(fact_count) + 1> f{};
    for (int i = 0; i < fact_count; ++i)
      f[static_cast<std::size_t>(i)] = attempt<capacity>.facts[i];
    return f;
  }();

  template <std::size_t... I>
  static constexpr auto make_kernels(std::index_sequence<I...>) {
    return std::array<region_kernel, sizeof...(I) + 1>{
        make_region_kernel<key_at<storage, static_cast<int>(I)>::value,
                           storage.keys[I].row>()...};
  }
  static constexpr auto kernels =
      make_kernels(std::make_index_sequence<static_cast<std::size_t>(storage.size.keys)>{});
};

/// The executables of one function at given argument types, by signature.
class signature_cache {
 public:
  signature_cache(const program& p, const region_kernel* kernels) : program_(p), kernels_(kernels) {}

  executable* find(const bound_call& call) {
    const std::lock_guard hold(lock_);
    if (last_ && matches(*last_, call)) return last_;
    for (auto& e : all_)
      if (matches(*e, call)) return last_ = e.get();
    return nullptr;
  }
  executable* add(const bound_call& call, const CompileOptions& options) {
    const std::lock_guard hold(lock_);
    if (static_cast<int>(all_.size()) >= options.max_signatures)
      throw error("Maximum number of different graphs allowed per function exceeded: " +
                  std::to_string(options.max_signatures) + " (" + options.name +
                  "); pad the arguments to fewer shapes or raise max_signatures");
    std::vector<shape> slots;
    for (const bound_slot& s : call.slots) slots.push_back(s.value ? s.value->dims : shape{});
    all_.push_back(
        std::make_unique<executable>(specializer(program_, kernels_, std::move(slots)).run()));
    return last_ = all_.back().get();
  }
  std::vector<const plan*> plans() {
    const std::lock_guard hold(lock_);
    std::vector<const plan*> all;
    for (auto& e : all_) all.push_back(&e->get_plan());
    return all;
  }
  /// Of the program and a signature.
  static std::uint64_t hash(const plan& p) {
    std::uint64_t h = static_cast<std::uint64_t>(p.source.count.steps);
    for (int i = 0; i < p.source.count.words; ++i) h = op_cache::mix(h, p.source.words[i]);
    for (const shape& s : p.slot_shapes)
      for (int i = 0; i < s.rank; ++i) h = op_cache::mix(h, static_cast<std::uint64_t>(s[i]));
    return h;
  }
  const program& source() const { return program_; }
  std::mutex& state_lock() { return state_lock_; }

 private:
  static bool matches(const executable& e, const bound_call& call) {
    const auto& shapes = e.get_plan().slot_shapes;
    for (std::size_t i = 0; i < shapes.size(); ++i)
      if (call.slots[i].value && !(call.slots[i].value->dims == shapes[i])) return false;
    return true;
  }
  program program_;
  const region_kernel* kernels_;
  std::mutex lock_, state_lock_;
  std::vector<std::unique_ptr<executable>> all_;
  executable* last_ = nullptr;
};

/// Calls in flight keep their tables for the next one.
class call_pool {
 public:
  std::unique_ptr<bound_call> take() {
    const std::lock_guard hold(lock_);
    if (free_.empty()) return std::make_unique<bound_call>();
    auto c = std::move(free_.back());
    free_.pop_back();
    return c;
  }
  void give(std::unique_ptr<bound_call> c) {
    c->clear();
    const std::lock_guard hold(lock_);
    free_.push_back(std::move(c));
  }

 private:
  spin_lock lock_;
  std::vector<std::unique_ptr<bound_call>> free_;
};

/// The sizes that a type fixes, against those of an argument: a difference is one sentence.
template <class... A>
void check_fixed_sizes(const program& p, const bound_call& call, std::tuple<A&...> arguments) {
  for (int i = 0; i < p.count.slots; ++i) {
    const int leaf = p.slots[i].leaf;
    if (leaf < 0 || !call.slots[static_cast<std::size_t>(i)].value) continue;
    const shape fixed = p.values[leaf].dims_shape();
    const shape& actual = call.slots[static_cast<std::size_t>(i)].value->dims;
    for (int k = 0; k < fixed.rank; ++k)
      if (is_known(fixed[k]) && fixed[k] != actual[k])
        throw shape_error("xla::compile: " + slot_path(arguments, i) + " is " +
                          std::string((text() << actual).view()) +
                          ", but its type's default constructor makes " +
                          std::string((text() << fixed).view()) +
                          "; sizes that vary belong into the type, as template parameters");
  }
}

/// Plain numbers among the members are facts of the type: the step was captured with them.
template <class Tuple>
void check_facts(const double* facts, const bound_call& call, Tuple& arguments) {
  for (std::size_t i = 0; i < call.facts.size(); ++i) {
    if (call.facts[i] == facts[i]) continue;
    const std::string path = std::apply(
        [&](auto&... v) { return fact_path(std::tie(v...), static_cast<int>(i)); }, arguments);
    throw error("xla::compile: " + path + " is " + print_number(call.facts[i]) +
                ", but its type's default constructor makes " + print_number(facts[i]) +
                ", and the step was compiled for that; make it a template parameter of the type, "
                "or an xla::Scalar if it is a hyper-parameter");
  }
}

template <class F, class... A>
struct printed_program {
  static constexpr auto graph = capture_graph<static_program<F, A...>::capacity, F, A...>();
};

template <class F>
class compiled_base {
 public:
  explicit compiled_base(CompileOptions options) : options_(std::move(options)) {}

 protected:
  template <class... A>
  auto run(A&&... a) {
    using program_type = static_program<F, A&&...>;
    if constexpr (!program_type::why.empty()) {
      return refusal_type<program_type::why>{};
    } else {
      return run_program<program_type>(std::forward<A>(a)...);
    }
  }

 private:
  template <class Program, class... A>
  auto run_program(A&&... a) {
    static const program source = Program::storage.view();
    auto& cache = cache_of<Program>(source);
    auto call = calls_.take();
    struct give_back {
      call_pool& pool;
      std::unique_ptr<bound_call>& call;
      ~give_back() { pool.give(std::move(call)); }
    } giver{calls_, call};
    std::tuple<std::remove_reference_t<A>&...> arguments(a...);
    auto work = [&] {
      bind<A...>(*call, arguments, std::index_sequence_for<A...>{});
      check_facts(Program::facts.data(), *call, arguments);
      executable* e = cache.find(*call);
      static counter& cached = get_counter("CachedCompile");
      if (e) cached.add();
      else e = specialize(cache, *call, arguments);
      if (debug_log::instance().level() > 1)
        report_execution(options_.name, cache.hash(e->get_plan()));
      static metric& execute_time = get_metric("ExecuteTime");
      const timed sample(execute_time);
      execution(*e, *call).run();
    };
    if (source.count.writes > 0) {
      const std::lock_guard one_at_a_time(cache.state_lock());
      work();
    } else {
      work();
    }
    using R = std::invoke_result_t<const F&, A&&...>;
    if constexpr (!std::is_void_v<R>) return unpack<R>(*call);
  }

  template <class... A, std::size_t... I>
  static void bind(bound_call& call, std::tuple<std::remove_reference_t<A>&...>& arguments,
                   std::index_sequence<I...>) {
    (pairing<A...>::template check<I>(arguments), ...);
    call_binder binder{call};
    (binder.argument(std::get<I>(arguments), static_cast<std::int64_t>(I)), ...);
  }

  template <class Tuple>
  executable* specialize(signature_cache& cache, const bound_call& call, Tuple& arguments) {
    static counter& uncached = get_counter("UncachedCompile");
    static metric& compile_time = get_metric("CompileTime");
    const timed sample(compile_time);
    std::apply([&](auto&... v) { check_fixed_sizes(cache.source(), call, std::tie(v...)); }, arguments);
    const std::vector<const plan*> known = cache.plans();
    executable* e = cache.add(call, options_);
    uncached.add();
    if (debug_log::instance().level() > 0) {
      auto name = [&](int slot) {
        return std::apply([&](auto&... v) { return slot_path(std::tie(v...), slot); }, arguments);
      };
      report({"compile", options_.name, cache.hash(e->get_plan()),
              what_changed(e->get_plan().slot_shapes, known, name)},
             e->get_plan());
    }
    return e;
  }

  template <class R>
  static R unpack(bound_call& call) {
    R result{};
    std::size_t next = 0;
    visit_tree(
        result,
        [&](auto& leaf, const tree_path&) {
          using L = bare<decltype(leaf)>;
          if constexpr (is_tensor<L>) leaf.adopt(ref<impl>(call.results[next++]).take());
          if constexpr (is_state<L>)
            machine<typename L::value_type>::place_cell(leaf, call.results[next++], L::trainable);
        },
        {});
    return result;
  }

  template <class Program>
  signature_cache& cache_of(const program& source) {
    static const char key = 0;
    const std::lock_guard hold(lock_);
    for (auto& [k, cache] : caches_)
      if (k == &key) return *cache;
    caches_.emplace_back(&key,
                         std::make_unique<signature_cache>(source, Program::kernels.data()));
    return *caches_.back().second;
  }

  CompileOptions options_;
  std::mutex lock_;
  std::vector<std::pair<const void*, std::unique_ptr<signature_cache>>> caches_;
  call_pool calls_;
};

}  // namespace detail

/// A step function that the C++ compiler has evaluated on symbolic tensors. The first call with new
/// sizes specialises it; later calls run its executable. May be called from several threads.
template <class F>
class Compiled : detail::compiled_base<F> {
 public:
  using detail::compiled_base<F>::compiled_base;
  template <class... A>
  auto operator()(A&&... a) {
    return this->run(std::forward<A>(a)...);
  }
  /// The graph of the function for arguments of these types, as text, at a stage of its way.
  template <class... A>
  std::string graph(Stage stage, A&&...) const {
    return detail::print_stage(detail::printed_program<F, A&&...>::graph, stage);
  }
};

namespace detail {
struct call_module {
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
  CompiledModule(M& module, CompileOptions options)
      : detail::compiled_base<detail::call_module>(std::move(options)), module_(&module) {}
  template <class... A>
  auto operator()(A&&... a) {
    return this->run(*module_, std::forward<A>(a)...);
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
    return Compiled<Function>(std::move(options));
  }
}

}  // namespace xla
