// SPDX-License-Identifier: Apache-2.0
#pragma once

// register_pass(): custom passes on the graphs that are recorded at run time. Compiled functions
// name theirs by tags::with; xla/passes.hpp includes both.

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <utility>

#include "xla/base/error.hpp"
#include "xla/base/fork.hpp"
#include "xla/base/system/mutex.hpp"
#include "xla/base/system/thread.hpp"
#include "xla/run/state/mode.hpp"
#include "xla/run/state/selected_passes.hpp"
#include "xla/transform/user_pass.hpp"

namespace xla {
namespace detail {

/// The passes that a program has registered. They run one at a time, whichever threads make graphs.
template <class = void>
class pass_registry : public registered_passes {
 public:
  struct entry {
    std::string name, after;
    std::function<void(Graph&)> run;
    bool removed = false;
  };

  static pass_registry& instance() {
    static constinit std::atomic<pass_registry*> only{nullptr};
    return made_once(only);
  }
  static constexpr fork_order order = fork_order::passes;
  void before_fork() { lock_.lock(); }
  void after_fork(bool) noexcept { lock_.unlock(); }

  void add(const std::shared_ptr<entry>& e) {
    const holding hold(*this);
    entries_.push_back(e);
    changed();
  }
  /// Waits while another thread runs the pass; a pass may remove itself.
  void remove(const std::shared_ptr<entry>& e) {
    const holding hold(*this);
    e->removed = true;
    entries_.remove(e);
    changed();
  }

 private:
  /// Within its scope, ops on existing tensors run at once; ops on pending ones are refused.
  struct pass_scope {
    const eager_mode_guard eager;
    pass_scope() { this_thread.in_pass = &refuse_tensors; }
    pass_scope(const pass_scope&) = delete;
    ~pass_scope() { this_thread.in_pass = nullptr; }
  };
  [[noreturn, gnu::cold]] static void refuse_tensors() {
    throw runtime_error(
        "xla: a registered pass needs tensors that are pending, and a graph is being made of "
        "them: read them before, and give the pass the numbers");
  }
  friend pass_registry& make_once<pass_registry>(std::atomic<pass_registry*>&);
  pass_registry() : registered_passes{&run_with_all} {}

  /// The lock, which a running pass already holds.
  struct holding {
    explicit holding(pass_registry& of) : of_(of), had_(of.holder_ == sys::this_thread_id()) {
      if (had_) return;
      of_.lock_.lock();
      of_.holder_ = sys::this_thread_id();
    }
    holding(const holding&) = delete;
    ~holding() {
      if (had_) return;
      of_.holder_ = sys::thread_id();
      of_.lock_.unlock();
    }
    pass_registry& of_;
    const bool had_;
  };

  void changed() {
    set.store(++sets_, std::memory_order_release);
    passes_registered.store(entries_.empty() ? nullptr : this, std::memory_order_release);
  }

  static void run_with_all(const registered_passes& self, pass_state& s, Passes wanted) {
    auto& own = const_cast<pass_registry&>(static_cast<const pass_registry&>(self));
    run_passes(passes, std::size(passes), s, wanted,
               [&](std::string_view after, pass_state& now) { own.run_after(after, now); });
  }
  void run_after(std::string_view stage, pass_state& s) {
    if (!s.wrong.empty()) return;
    const holding hold(*this);
    const pass_scope within;
    const auto now = entries_;  // if a pass may change it
    for (const auto& e : now)
      if (e->after == stage && !e->removed) run_pass(e->name, stage, e->run, s);
  }

  sys::mutex lock_;
  std::atomic<sys::thread_id> holder_{};
  std::list<std::shared_ptr<entry>> entries_;
  std::uint64_t sets_ = 0;
};

}  // namespace detail

/// Keeps a pass registered until remove(), or until the handle is destroyed.
class [[nodiscard]] PassHandle {
 public:
  PassHandle() = default;
  PassHandle(PassHandle&& o) noexcept = default;
  PassHandle& operator=(PassHandle&& o) {
    if (this != &o) remove();
    entry_ = std::move(o.entry_);
    return *this;
  }
  ~PassHandle() { remove(); }
  /// Graphs that are made from now on do not use the pass. When this returns, it is not running.
  void remove() {
    if (entry_) detail::pass_registry<>::instance().remove(std::exchange(entry_, nullptr));
  }

 private:
  friend PassHandle register_pass(std::string, std::function<void(Graph&)>, std::string);
  explicit PassHandle(std::shared_ptr<detail::pass_registry<>::entry> e) : entry_(std::move(e)) {}
  std::shared_ptr<detail::pass_registry<>::entry> entry_;
};

/// Runs a pass on each graph recorded at run time from now on, on every thread. See xla/passes.hpp.
inline PassHandle register_pass(std::string name, std::function<void(Graph&)> pass,
                                std::string after = "captured") {
  detail::text wrong;
  detail::refuse_names(name, after, wrong);
  if (wrong.empty() && !pass) wrong << "the pass " << name << " is an empty function";
  if (!wrong.empty()) throw runtime_error("xla::register_pass: " + std::string(wrong.view()));
  auto entry = std::make_shared<detail::pass_registry<>::entry>();
  *entry = {std::move(name), std::move(after), std::move(pass)};
  detail::pass_registry<>::instance().add(entry);
  return PassHandle(std::move(entry));
}
/// The same for an object of a class that xla::tags::with accepts.
template <class P>
  requires detail::compiled_pass<P>
PassHandle register_pass(P pass) {
  return register_pass(std::string(P::name), std::move(pass), std::string(detail::stage_of<P>()));
}

}  // namespace xla
