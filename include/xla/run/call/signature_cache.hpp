// SPDX-License-Identifier: Apache-2.0
#pragma once

// The executables of a compiled function, by the sizes of its arguments; a new signature is
// specialised here. Traced graphs are cached by run/trace/lazy.hpp instead.

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "xla/base/dependent.hpp"
#include "xla/base/hash.hpp"
#include "xla/base/instance.hpp"
#include "xla/base/list.hpp"
#include "xla/base/system/mutex.hpp"
#include "xla/base/text.hpp"
#include "xla/run/call/call.hpp"
#include "xla/run/call/compiled_program.hpp"
#include "xla/run/execute/executable.hpp"
#include "xla/run/plan/memory_of.hpp"
#include "xla/run/state/metric_store.hpp"

namespace xla {

namespace detail {

/// A program's plan for slots of these sizes.
template <class In = void>
dependent<In, std::unique_ptr<executable>> specialize(const program& p,
                                                      const region_kernel* kernels,
                                                      list<shape> slots, const list<char>& absent,
                                                      bool winograd, arena_store& arenas) {
  return std::make_unique<dependent<In, planned>>(
      size_program<In>(p, std::move(slots), absent, winograd), kernels, arenas);
}
XLA_INSTANCE(std::unique_ptr<executable> specialize<void>(const program&, const region_kernel*,
                                                          list<shape>, const list<char>&, bool,
                                                          arena_store&));

/// The executables of one function at given argument types, by signature.
template <class In>
class basic_signature_cache {
 public:
  /// ops: the unfused program for other backends, or nullptr.
  basic_signature_cache(const program& p, const region_kernel* kernels, const program* ops,
                        Backend wanted = {})
      : program_(p), kernels_(kernels), ops_(ops), backend_(wanted) {
    for (int i = 0; i < p.count.slots; ++i) {
      const program_slot& s = p.slots[i];
      changes_ |= changes(s);
      tells_ |= s.left_in >= 0 && s.requires_grad >= 0;
      collects_ |= s.use == gradient_use::collected;
      reads_ |= s.kind == slot_kind::tensor && s.use == gradient_use::read;
    }
  }

  using cached_executable = std::shared_ptr<basic_executable<In>>;

  /// Before anything else: makes the rows that a captured program does not store.
  void make_rows() {
    if (program_.count.rows > 0) maker_of_loops(program_).make_rows(program_, ops_, step_axes_);
  }
  /// The caller's reference keeps it alive, even if the cache evicts it.
  cached_executable find(const dependent<In, bound_call>& call) {
    const std::lock_guard hold(lock_);
    return look_up(call);
  }
  /// other_steps: whether it differs from another signature in numbers of steps alone.
  [[gnu::cold]] cached_executable add(const dependent<In, bound_call>& call,
                                      const CompileOptions& options, bool& other_steps) {
    const std::lock_guard hold(lock_);
    if (auto made_meanwhile = look_up(call)) return made_meanwhile;
    const backend* const by = backend_.get<In>();
    list<shape> slots = shapes_of<In>(call);
    position_in_family found{.full = all_.size() >= options.max_signatures};
    if (program_.count.bodies > 0 && !by)
      maker_of_loops(program_).find_family(program_, step_axes_, all_, slots, call.absent, found);
    other_steps = found.other_steps;
    if (found.full && found.leaver < 0)
      throw runtime_error(
          join({"Maximum number of different graphs allowed per function exceeded: ",
                decimal(options.max_signatures), " (", options.name,
                "); pad the arguments to fewer shapes or raise max_signatures"}));
    cached_executable made = by ? by->compile(ops_, std::move(slots), call.absent, options.winograd)
                                : specialize<In>(program_, kernels_, std::move(slots), call.absent,
                                                 options.winograd, arenas_);
    const std::int64_t bytes = made->bytes();
    if (found.full) forget(found.leaver);
    make_room(bytes);
    all_.push_back({made, bytes, ++uses_, hash_of(made->about()), found.family});
    bytes_ += bytes;
    last_ = all_.size() - 1;
    enter(last_);
    return made;
  }
  [[gnu::cold]] list<cached_executable> known() {
    const std::lock_guard hold(lock_);
    list<cached_executable> all;
    for (auto& e : all_) all.push_back(e.made);
    return all;
  }
  /// The hash of the program and a signature.
  static std::uint64_t hash(const dependent<In, sized_program>& p) {
    std::uint64_t h = static_cast<std::uint64_t>(p.source.count.steps);
    for (int i = 0; i < p.source.count.words; ++i) h = mix(h, p.source.words[i]);
    for (const shape& s : p.slot_shapes) h = add(h, s);
    return h;
  }
  const program& source() const { return program_; }
  /// Whether backward() adds to gradients.
  bool collects_gradients() const { return collects_ || tells_; }
  /// Whether a gradient that the program reads or adds to may be absent.
  bool misses_gradients() const { return changes_ || reads_; }
  /// Whether a call changes any of its arguments.
  bool changes_arguments() const { return changes_; }
  sys::mutex& state_lock() { return state_lock_; }
  /// Acquires or releases its locks around fork().
  [[gnu::cold]] void hold(bool holds) {
    if (holds) state_lock_.lock(), lock_.lock();
    else lock_.unlock(), state_lock_.unlock();
  }

 private:
  using entry = dependent<In, basic_cached_executable<void>>;

  cached_executable look_up(const dependent<In, bound_call>& call) {
    const backend* const by = backend_.get<In>();
    if (all_.empty()) return nullptr;
    if (matches(*all_[last_].made, call, by)) return all_[last_].made;
    for (int at = hash(call);; ++at)
      if (const int i = bucket(at); i < 0) return nullptr;
      else if (entry& e = all_[i]; matches(*e.made, call, by)) {
        e.used = ++uses_;
        last_ = i;
        return e.made;
      }
  }
  /// Makes room for a new entry by evicting the least recently used ones.
  [[gnu::cold]] void make_room(std::int64_t bytes) {
    while (!all_.empty() && bytes_ + bytes > compilation_cache_limit<>()) {
      const auto* const oldest = std::min_element(
          all_.begin(), all_.end(), [](const entry& a, const entry& b) { return a.used < b.used; });
      forget(static_cast<int>(oldest - all_.begin()));
    }
    if (2 * all_.size() >= buckets_.size()) make_buckets();
  }
  [[gnu::cold, gnu::noinline]] void forget(int i) {
    bytes_ -= all_[i].bytes;
    all_[i] = std::move(all_.back());
    all_.pop_back();
    last_ = 0;
    enter_all();
    global_metrics<In>().evicted_compile.add();
  }
  [[gnu::noinline]] static bool matches(const dependent<In, executable>& e,
                                        const dependent<In, bound_call>& call, const backend* by) {
    if (e.made_by() != by) return false;
    const dependent<In, sized_program>& about = e.about();
    if (about.world != 0 && about.world != world_now()) return false;
    const auto& shapes = about.slot_shapes;
    for (int i = 0; i < shapes.size(); ++i)
      if (call.slots[i].value && !same_dims(*call.slots[i].value, shapes[i])) return false;
    return call.absent.empty()
               ? !about.absent
               : about.absent && std::memcmp(about.own.get(), call.absent.data(),
                                             static_cast<std::size_t>(call.absent.size())) == 0;
  }
  static int hash(const dependent<In, bound_call>& call) {
    std::uint64_t h = 0;
    for (const slot_binding& s : call.slots)
      if (s.value) h = add(h, *s.value);
    return static_cast<int>(h >> 34);
  }
  static int hash_of(const dependent<In, sized_program>& p) {
    std::uint64_t h = 0;
    for (const shape& s : p.slot_shapes) h = add(h, s);
    return static_cast<int>(h >> 34);
  }
  static std::uint64_t add(std::uint64_t h, const auto& s) {
    for (int i = 0; i < s.rank; ++i) h = mix(h, static_cast<std::uint64_t>(s.dims[i]));
    return h;
  }
  int& bucket(int at) { return buckets_[at & (buckets_.size() - 1)]; }
  void enter(int i) {
    int at = all_[i].hash;
    while (bucket(at) >= 0) ++at;
    bucket(at) = i;
  }
  [[gnu::cold]] void make_buckets() {
    int count = 16;
    while (count < 4 * all_.size()) count *= 2;
    list<int> more(count, -1);
    buckets_.swap(more);
    enter_all();
  }
  [[gnu::cold, gnu::noinline]] void enter_all() noexcept {
    for (int& i : buckets_) i = -1;
    for (int i = 0; i < all_.size(); ++i) enter(i);
  }
  program program_;
  bool changes_ = false, collects_ = false, reads_ = false, tells_ = false;
  const region_kernel* kernels_;
  const program* ops_;
  const Backend backend_;
  sys::mutex lock_, state_lock_;
  list<char> step_axes_;  // of loops: the axes that determine numbers of steps, and rows of both
                          // programs, see loop_maker
  arena_store arenas_;    // shared by all signatures
  list<entry> all_;
  std::int64_t bytes_ = 0;
  std::uint64_t uses_ = 0;
  list<int>
      buckets_;   // a hash table whose size is a power of two: indices in all_, by linear probing
  int last_ = 0;  // the index in all_ of the latest entry found or made
};
using signature_cache = basic_signature_cache<void>;

}  // namespace detail
}  // namespace xla
