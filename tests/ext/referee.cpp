// SPDX-License-Identifier: Apache-2.0
// The backend "referee", which is linked to tests: XLA_BACKEND=referee runs every program of
// theirs, an op of eager mode too, on XLA as well and on the interpreter, whose results the test
// gets. What XLA makes of the same arguments is compared with these: any difference beyond the
// tolerances below ends the process with 1. XLA_TEST_REFEREE=<file>: at the end it holds a line for
// each op and type of elements, "op type programs units", and for each op of larger programs "op -
// programs 0". XLA_TEST_KNOWN=<file>: what is there, of this process or an earlier one, XLA has
// computed, and no program of nothing else goes there. XLA_TEST_PROGRAMS=<folder>: each larger
// program is there, text, arguments and results, for tests/reference/stablehlo.py.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "xla/ext/pjrt.hpp"
#include "xla/run/backend/common.hpp"
#include "xla/run/execute/store_number.hpp"

namespace {

using namespace xla::detail;

/// How far XLA's result of one op may be from the library's, in units in the last place of the
/// element; of what adds up, of the sum of the terms' magnitudes.
struct tolerance {
  std::string_view op;
  double of_float, of_double;
};
constexpr tolerance usual{"", 4, 4};
constexpr tolerance others[] = {{"expm1", 8, 8},
                                {"tanh", 4, 8},
                                {"erfc", 64, 64},
                                {"ndtr", 128, 1024},
                                {"lgamma", 64, 1 << 16},  // few terms
                                {"digamma", 64, 1 << 16},
                                {"zeta", 64, 1 << 22},
                                {"sum", 24, 24},
                                {"prod", 16, 16},
                                {"cumprod", 32, 32},
                                {"matmul", 16, 16},
                                {"attention", 32, 32},
                                {"attention_gradient", 1024, 1024},  // differences of what is near
                                {"resample", 8, 16},
                                {"resample_backward", 32, 32},
                                {"convolution", 32, 32},  // Winograd's algorithm
                                {"convolution_input", 32, 32},
                                {"convolution_weight", 48, 48}};
/// Of a program of several ops, in units of the largest element of a result.
constexpr double of_programs = 1024;

const tolerance& tolerance_of(std::string_view op) {
  for (const tolerance& t : others)
    if (t.op == op) return t;
  return usual;
}

template <class T>
constexpr double least = std::numeric_limits<T>::min();  ///< of the normal numbers
template <>
constexpr double least<xla::bfloat16> = std::numeric_limits<float>::min();
template <class T>
constexpr double unit_of_one = std::numeric_limits<T>::epsilon();
template <>
constexpr double unit_of_one<xla::bfloat16> = 0x1p-7;

template <class T>
double unit_at(double x) {
  return std::ldexp(unit_of_one<T>, std::ilogb(std::max(std::abs(x), least<T>)));
}

/// Units between two elements. XLA flushes what is below the normal numbers to zero.
template <class T>
double units_between(T got, T want, double scale) {
  const auto a = static_cast<double>(got), b = static_cast<double>(want);
  if (a == b || (a != a && b != b)) return 0;
  if constexpr (std::is_integral_v<T>) {
    return std::numeric_limits<double>::infinity();
  } else {
    if (std::abs(a) <= least<T> && std::abs(b) <= least<T>) return 0;
    if (!std::isfinite(a) || !std::isfinite(b)) return std::numeric_limits<double>::infinity();
    if (!std::isfinite(scale)) scale = std::numeric_limits<float>::max();
    return std::abs(a - b) / unit_at<T>(std::max(std::abs(b), scale));
  }
}

/// The elements of one result by both, and how large the terms were, or nullptr.
struct result {
  xla::dtype type;
  std::int64_t count;
  const void *got, *want, *scale;
};
struct largest {
  double units = 0;
  std::int64_t at = 0;
  std::string numbers;
};

template <class T>
largest compare(const result& r, bool by_largest) {
  const auto *got = static_cast<const T*>(r.got), *want = static_cast<const T*>(r.want),
             *scale = static_cast<const T*>(r.scale);
  double of_all = 0;
  for (std::int64_t i = 0; i < r.count && by_largest; ++i)
    if (const double x = std::abs(static_cast<double>(want[i])); std::isfinite(x))
      of_all = std::max(of_all, x);
  largest out;
  for (std::int64_t i = 0; i < r.count; ++i) {
    const double s = scale ? std::abs(static_cast<double>(scale[i])) : of_all;
    const double units = units_between(got[i], want[i], s);
    if (units <= out.units) continue;
    out = {units, i,
           std::to_string(static_cast<double>(got[i])) + " for " +
               std::to_string(static_cast<double>(want[i]))};
  }
  return out;
}
largest compare(const result& r, bool by_largest) {
  switch (r.type) {
    case xla::dtype::float32: return compare<float>(r, by_largest);
    case xla::dtype::float64: return compare<double>(r, by_largest);
    case xla::dtype::bfloat16: return compare<xla::bfloat16>(r, by_largest);
    case xla::dtype::int64: return compare<std::int64_t>(r, by_largest);
    case xla::dtype::int32: return compare<std::int32_t>(r, by_largest);
    default: return compare<std::uint8_t>(r, by_largest);
  }
}

/// What was seen, written when the process ends.
class ledger {
 public:
  static ledger& instance() {
    static ledger& one = *new ledger;
    return one;
  }
  void note(const std::string& op, double units) {
    const std::lock_guard hold(lock_);
    row& r = rows_[op];
    ++r.programs;
    r.units = std::max(r.units, units);
  }
  void refuse(const std::string& what) {
    const std::lock_guard hold(lock_);
    if (wrong_.size() < 200) wrong_.push_back(what);
  }

 private:
  struct row {
    std::int64_t programs = 0;
    double units = 0;
  };
  ledger() {
    std::atexit([] { instance().end(); });
  }
  void end() {
    if (const char* const path = std::getenv("XLA_TEST_REFEREE")) {
      std::ofstream to(path);
      for (const auto& [op, r] : rows_)
        to << op << ' ' << r.programs << ' ' << std::ceil(r.units) << '\n';
    }
    for (const std::string& what : wrong_) std::printf("referee: %s\n", what.c_str());
    std::fflush(nullptr);
    if (!wrong_.empty()) std::_Exit(1);
  }
  std::mutex lock_;
  std::map<std::string, row> rows_;
  std::vector<std::string> wrong_;
};

/// What XLA has been given: an op by its types, alone or among others; alone also by whether there
/// are sizes of 0, or of 1.
class known_parts {
 public:
  static known_parts& instance() {
    static known_parts& one = *new known_parts;
    return one;
  }
  /// Whether a program has something that none before it had; now that is known.
  bool learns_from(const sized_program& p) {
    if (!file_.is_open()) return true;
    const std::lock_guard hold(lock_);
    bool any = false;
    for (int v = 0; v < p.source.count.values; ++v) {
      const op_kind kind = p.source.values[v].op->kind;
      if (kind == op_kind::leaf || kind == op_kind::constant) continue;
      const std::string part = part_of(p, v);
      if (!known_.insert(part).second) continue;
      file_ << part << std::endl;
      any = true;
    }
    return any;
  }

 private:
  known_parts() {
    const char* const path = std::getenv("XLA_TEST_KNOWN");
    if (!path) return;
    std::ifstream from(path);
    for (std::string line; std::getline(from, line);) known_.insert(line);
    file_.open(path, std::ios::app);
  }
  static std::string type_of(const node& n) { return ' ' + std::string(xla::name_of(n.type)); }
  static std::string part_of(const sized_program& p, int v) {
    const bool alone = p.source.count.steps == 1;
    const node& n = p.source.values[v];
    std::string part = (alone ? "" : "in ") + std::string(n.op->name) + type_of(n);
    std::string sizes = alone ? sizes_of(p, v) : "";
    const int* const in = p.source.inputs_of(v);
    for (int k = 0; k < n.arity; ++k) {
      part += type_of(p.source.values[in[k]]);
      if (alone) sizes += sizes_of(p, in[k]);
    }
    for (const char kind : {'0', '1'})
      if (sizes.find(kind) != sizes.npos) part += std::string(" with ") + kind;
    return part;
  }
  static std::string sizes_of(const sized_program& p, int v) {
    std::string kinds;
    for (int axis = 0; axis < p.shapes[v].rank; ++axis)
      kinds += p.shapes[v][axis] == 0 ? '0' : p.shapes[v][axis] == 1 ? '1' : 'n';
    return kinds;
  }

  std::mutex lock_;
  std::set<std::string> known_;
  std::ofstream file_;
};

/// Programs in a folder: <number>.mlir, <number>.in and <number>.out, the elements one after the
/// other, as the text says their types.
class program_files {
 public:
  static bool wanted() { return std::getenv("XLA_TEST_PROGRAMS") != nullptr; }
  explicit program_files(const sized_program& p) : p_(p), program_(write_stablehlo(p)) {
    static std::atomic<int> count{0};
    name_ = std::string(std::getenv("XLA_TEST_PROGRAMS")) + "/" + std::to_string(::getpid()) + "_" +
            std::to_string(count++);
  }
  /// Before it has run, and then.
  void write_arguments(const run_arguments& with) const {
    std::ofstream(name_ + ".mlir") << program_.text;
    std::ofstream to(name_ + ".in", std::ios::binary);
    for (const stablehlo_argument& a : program_.arguments) {
      const slot_value* const s = with.slots + a.number;
      std::uint64_t words[2] = {};
      const void* from = words;
      if (a.is == stablehlo_argument::role::value) from = s->value->host_copy;
      else if (a.is == stablehlo_argument::role::gradient) from = s->gradient->host_copy;
      else if (a.is == stablehlo_argument::role::draw)
        words[0] = with.random[a.number].seed, words[1] = with.random[a.number].offset;
      else store(words, a.type.of, s->number);
      const auto bytes = count(a.type.dims) * bytes_of(a);
      to.write(static_cast<const char*>(from), bytes);
    }
  }
  void write_results(const run_arguments& with) const {
    std::ofstream to(name_ + ".out", std::ios::binary);
    for (int i = 0; i < p_.source.count.writes + p_.source.count.results; ++i)
      to.write(static_cast<const char*>(with.outputs[i]->memory),
               p_.bytes(output_of(p_.source, i)));
  }

 private:
  static std::int64_t bytes_of(const stablehlo_argument& a) {
    for (const auto& e : xla::ext::pjrt::all_elements)
      if (e.in_text == hlo::name_of(a.type.of)) return static_cast<std::int64_t>(e.bytes);
    std::abort();
  }
  static void store(void* to, hlo::element type, double number) {
    using enum xla::dtype;
    for (const xla::dtype t : {float32, float64, bfloat16, int32, int64, uint8, boolean})
      if (hlo::element_of(t) == type)
        store_number(to, t, {number, static_cast<std::int64_t>(number)});
  }
  const sized_program& p_;
  stablehlo_program program_;
  std::string name_;
};

class both final : public executable {
 public:
  both(const backend& by, const backend& there, sized_program&& p)
      : executable(&by), here_(backend_list<void>::named("interpreter")->make(std::move(p))) {
    const program& ops = here_->about().source;
    if (!there.lacks(ops) && known_parts::instance().learns_from(here_->about()))
      there_ = there.make(in_arrays_of<>(here_->about()));
    seen_ = in_arrays_of<>(here_->about());
    for (int i = 0; i < ops.count.writes; ++i) {
      const xla::detail::write& w = ops.writes[i];
      const int old = w.gradient ? ops.slots[w.slot].grad_leaf : ops.slots[w.slot].leaf;
      seen_.in_place[i] = old >= 0 && ops.values[old].type == ops.values[w.value].type &&
                          seen_.shapes[old] == seen_.shapes[w.value];
    }
    if (ops.count.steps == 1) one_ = &ops.values[ops.steps[0].value];
  }
  const sized_program& about() const override { return seen_; }
  bool check(const run_arguments& with) override { return here_->check(with); }
  xla::MemoryAnalysis memory() const override { return here_->memory(); }

  void run(const run_arguments& with) override {
    if (!there_) return here_->run(with);
    const room got = make();
    std::unique_ptr<program_files> files;
    if (program_files::wanted() && !one_ && !written_.exchange(true))
      files = std::make_unique<program_files>(about());
    if (files) files->write_arguments(with);
    std::string thrown;
    try {
      there_->run({with.slots, got.places.data(), with.random});
    } catch (const std::exception& e) {
      thrown = e.what();
    }
    room want, scales, out = make();  // a result may take the place of what is read
    try {
      here_->run({with.slots, out.places.data(), with.random});
      want = of_changed(with, false);
      if (one_ && one_->op->kind != op_kind::map && one_->op->kind != op_kind::output &&
          !one_->op->impure)
        scales = of_changed(with, true);
    } catch (const std::exception& e) {
      if (thrown != e.what()) refuse("XLA says '" + thrown + "' for '" + e.what() + "'");
      throw;
    }
    for (int i = 0; i < outputs(); ++i)
      std::memcpy(with.outputs[i]->memory, out.places[i]->memory,
                  static_cast<std::size_t>(about().bytes(output_of(about().source, i))));
    if (!thrown.empty()) return refuse("XLA says '" + thrown + "'");
    if (files) files->write_results(with);
    compare_all(got, want, scales);
  }

 private:
  struct room {
    list<ref<buffer>> all;
    list<buffer*> places;
    buffer* add(std::int64_t bytes) {
      all.emplace_back(buffer::make(static_cast<std::size_t>(bytes)));
      places.push_back(all.back().get());
      return all.back().get();
    }
  };
  int outputs() const { return about().source.count.writes + about().source.count.results; }
  room make() const {
    room m;
    for (int i = 0; i < outputs(); ++i) m.add(about().bytes(output_of(about().source, i)));
    return m;
  }

  /// What the op makes of its arguments changed: as XLA sees them, where numbers below the normal
  /// ones are zeros; and of their magnitudes, which says how large its terms are.
  room of_changed(const run_arguments& with, bool magnitudes) {
    const program& ops = about().source;
    room held, out = make();
    list<slot_value> slots;
    for (int i = 0; i < ops.count.slots; ++i) {
      slot_value s = with.slots[i];
      if (magnitudes) s.number = std::abs(s.number);
      if (s.value) s.value = changed(held, ops.slots[i].leaf, *s.value, magnitudes);
      if (s.gradient) s.gradient = changed(held, ops.slots[i].grad_leaf, *s.gradient, magnitudes);
      slots.push_back(s);
    }
    here_->run({slots.data(), out.places.data(), with.random});
    return out;
  }
  buffer* changed(room& held, int leaf, buffer& of, bool magnitudes) const {
    if (leaf < 0) return &of;  // which the program does not read
    const xla::dtype type = about().source.values[leaf].type;
    const std::int64_t n = count(about().shapes[leaf]);
    const void* const from = of.host_copy;
    if (type != xla::dtype::float32 && type != xla::dtype::float64) return &of;
    buffer* const to = held.add(about().bytes(leaf));
    const auto fill = [&]<class T>(T) {
      for (std::int64_t i = 0; i < n; ++i) {
        const T x = static_cast<const T*>(from)[i];
        static_cast<T*>(to->memory)[i] = magnitudes                         ? std::abs(x)
                                         : std::abs(x) < std::abs(least<T>) ? std::copysign(T(0), x)
                                                                            : x;
      }
    };
    if (type == xla::dtype::float32) fill(0.f);
    else fill(0.);
    return to;
  }

  void compare_all(const room& got, const room& want, const room& scales) {
    double units = 0;
    for (int i = 0; i < outputs(); ++i) {
      const int v = output_of(about().source, i);
      const xla::dtype type = about().source.values[v].type;
      const largest l =
          compare({type, count(about().shapes[v]), got.places[i]->memory, want.places[i]->memory,
                   scales.places.empty() ? nullptr : scales.places[i]->memory},
                  !one_);
      units = std::max(units, l.units);
      if (l.units > allowed(type))
        refuse("result " + std::to_string(i) + ", element " + std::to_string(l.at) + ": " +
               l.numbers + ", " + std::to_string(l.units) + " units");
    }
    note(units);
  }
  double allowed(xla::dtype type) const {
    if (!one_) return of_programs;
    const tolerance& t = tolerance_of(one_->op->name);
    return type == xla::dtype::float64 ? t.of_double : t.of_float;
  }
  void note(double units) const {
    const program& ops = about().source;
    if (one_)
      return ledger::instance().note(std::string(one_->op->name) + " " + type_name(), units);
    for (int v = 0; v < ops.count.values; ++v)
      ledger::instance().note(std::string(ops.values[v].op->name) + " -", 0);
  }
  /// Of what it reads, as a comparison makes no numbers.
  std::string type_name() const {
    const node& first = one_->arity > 0 ? about().source.values[one_->in[0]] : *one_;
    return std::string(xla::name_of(first.type));
  }
  void refuse(const std::string& what) const {
    const program& ops = about().source;
    std::string sentence;
    for (int i = 0; i < ops.count.steps; ++i)
      sentence += std::string(ops.values[ops.steps[i].value].op->name) + " ";
    if (one_) sentence += type_name() + " ";
    for (const shape& s : about().slot_shapes)
      sentence += std::string((xla::detail::text("") << s).view()) + " ";
    ledger::instance().refuse(sentence + ": " + what);
  }

  std::unique_ptr<executable> here_;
  std::unique_ptr<executable> there_;
  sized_program seen_;         // by the caller: results may be where they replace something
  const node* one_ = nullptr;  // the op, if it is one
  std::atomic<bool> written_{false};
};

class referee final : public common_backend {
 public:
  std::string_view name() const override { return "referee"; }
  const op_info* lacks(const program&) const override { return nullptr; }
  std::unique_ptr<executable> make(sized_program&& p) const override {
    return std::make_unique<both>(*this, pjrt_backend_of("CPU"), std::move(p));
  }
  bool runs_single_ops() const override { return true; }
};
referee the_referee;

const bool added = [] {
  backend_list<void>::add(the_referee);
  const char* const chosen = std::getenv("XLA_BACKEND");
  if (!chosen || (std::string_view(chosen) != "referee" && std::string_view(chosen) != "pjrt:CPU"))
    return true;
  try {
    xla::ext::pjrt::find_plugin("CPU");
  } catch (const xla::runtime_error& e) {
    const char* const required = std::getenv("XLA_REQUIRE_PJRT");
    std::printf("skipped: %s\n", e.what());
    std::exit(required && *required == '1' ? 1 : 0);
  }
  return true;
}();

}  // namespace
