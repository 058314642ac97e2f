// SPDX-License-Identifier: Apache-2.0
// A model's structure is its type: nested modules, arrays, tuples, templates.
#include "support/mlp.hpp"
#include "xla/optim/average.hpp"
#include "xla/xla.hpp"

using test::batch;
namespace nn = xla::nn;

namespace {

struct Block {
  nn::Linear a{9, 9}, b{9, 9};
  constexpr auto operator()(xla::Tensor<float, 2> x) const { return x + b(xla::relu(a(x))); }
  XLA_MODULE(a, b)
};

template <int Depth>
struct Residual {
  nn::Linear in{17, 9};
  std::array<Block, Depth> blocks;
  nn::Linear out{9, 5};
  int turns = 2;
  constexpr auto operator()(xla::Tensor<float, 2> x) const {
    auto h = in(x);
    for (int i = 0; i < turns; ++i)
      for (auto& block : blocks) h = block(h);
    return out(h);
  }
  XLA_MODULE(in, blocks, out, turns)
};

template <class Model>
test::snapshot train(Model& model, auto run) {
  nn::CrossEntropyLoss loss_fn;
  xla::optim::AdamW optimizer{model, {.lr = 1e-2}};
  for (std::uint64_t i = 0; i < 5; ++i) {
    batch b(8, i);
    run(model, b.data, b.target, loss_fn, optimizer);
  }
  return test::state_of(model, optimizer);
}

template <class Make>
void check_trains_alike(Make make) {
  const xla::eager_mode_guard guard;
  auto fresh = [&] {
    xla::manual_seed(11);
    return make();
  };
  auto first = fresh();
  const auto eager = train(first, test::step_fn);
  auto step = xla::compile(test::step_fn);
  auto second = fresh();
  CHECK(train(second, [&](auto&... a) { step(a...); }).difference(eager) == "");
  xla::eager_mode(false);
  auto third = fresh();
  CHECK(train(third, test::step_fn).difference(eager) == "");
}

std::vector<std::string> names_of(auto& model) {
  std::vector<std::string> names;
  xla::named_parameters(model, [&](const std::string& name, auto&) { names.push_back(name); });
  return names;
}

}  // namespace

TEST_CASE("a Sequential of sized layers trains the same in every mode") {
  check_trains_alike([] {
    return nn::Sequential{nn::Linear{17, 33}, nn::ReLU{}, nn::Linear{33, 5}};
  });
}

TEST_CASE("arrays of modules in a class template train the same in every mode") {
  check_trains_alike([] { return Residual<2>(); });
}

TEST_CASE("parameters have PyTorch's names, and are counted") {
  const xla::eager_mode_guard eager;
  Residual<2> model;
  CHECK(names_of(model) == std::vector<std::string>{"in.weight", "in.bias", "blocks.0.a.weight",
                                                    "blocks.0.a.bias", "blocks.0.b.weight",
                                                    "blocks.0.b.bias", "blocks.1.a.weight",
                                                    "blocks.1.a.bias", "blocks.1.b.weight",
                                                    "blocks.1.b.bias", "out.weight", "out.bias"});
  CHECK(xla::parameter_count(model) == 17 * 9 + 9 + 4 * (81 + 9) + 45 + 5);
  nn::Sequential layers{nn::Linear{2, 3}, nn::ReLU{}, nn::Linear{3, 1}};
  CHECK(names_of(layers) == std::vector<std::string>{"0.weight", "0.bias", "2.weight", "2.bias"});
}

TEST_CASE("a plain number that differs from the type's is refused with its path") {
  const xla::eager_mode_guard eager;
  Residual<1> model;
  auto predict = xla::compile(model);
  const batch b(4);
  test::check_equal(predict(b.data), model(b.data));
  model.turns = 3;
  CHECK_THROWS_AS(predict(b.data), xla::error);
  CHECK_THROWS_WITH(predict(b.data), test::contains("turns"));
  model.turns = 2;
  test::check_equal(predict(b.data), model(b.data));
}

TEST_CASE("a Sequential takes other sizes as another signature") {
  const xla::eager_mode_guard eager;
  nn::Sequential narrow{nn::Linear{17, 3}, nn::Tanh{}, nn::Linear{3, 2}};
  nn::Sequential wide{nn::Linear{17, 64}, nn::Tanh{}, nn::Linear{64, 2}};
  auto f = xla::compile([](const auto& model, const auto& x) { return model(x); });
  const batch b(4);
  test::check_equal(f(narrow, b.data), narrow(b.data));
  test::check_equal(f(wide, b.data), wide(b.data));
  test::check_equal(f(narrow, b.data), narrow(b.data));
}

TEST_CASE("random numbers in a step are the same in every mode") {
  auto noise = [](auto& x) {
    const auto keep = rand_like(x) < 0.5;
    const auto normal = randn_like(sum(x, {0}));
    const auto third = rand_like(x);
    return std::tuple(where(keep, x * 2, 0), normal + x, third);
  };
  test::check_modes(noise, test::numbers<float>({7, 13}));
  test::check_modes(noise, test::numbers<double>({33, 17}));
}

namespace {

struct Leaf {
  xla::Parameter<float, 1> w{{3}};
  xla::Buffer<std::int64_t, 1> seen{{3}};
  xla::TrainingFlag on;
  xla::Scalar gain = 1;
  XLA_MODULE(w, seen, on, gain)
};
struct Leaves {
  std::array<Leaf, 2> all;
  XLA_CONTAINER(all)
};
struct Tree {
  Leaves leaves;
  std::tuple<xla::Parameter<float, 1>, int> tail{xla::Parameter<float, 1>({3}), 7};
  xla::Tensor<float, 1> seed;
  Leaf last;
  XLA_MODULE(leaves, tail, seed, last)
};

/// What a visitor of arguments meets: its kind and name, and of an optimizer's state what owns it.
struct leaf_list {
  std::array<xla::detail::text, 64> names;
  std::array<const xla::detail::handle*, 64> leaves = {};
  int count = 0;

  constexpr void add(const char* kind, const xla::tree_path& path) {
    xla::detail::text t;
    path.write(t);
    names[static_cast<std::size_t>(count++)] << kind << t;
  }
  constexpr void cell(const xla::detail::handle& h, const xla::tree_path& path) {
    leaves[static_cast<std::size_t>(count)] = &h;
    add("cell ", path);
  }
  constexpr void kept(const xla::detail::handle& h, const xla::detail::handle& owner,
                      const xla::tree_path& path) {
    cell(h, path);
    for (int i = 0; i < count; ++i)
      if (leaves[static_cast<std::size_t>(i)] == &owner)
        names[static_cast<std::size_t>(count - 1)] << " of " << i;
  }
  constexpr void tensor(const auto&, const auto& path) { add("tensor ", path); }
  constexpr void scalar(const auto&, const auto& path) { add("scalar ", path); }
  constexpr void flag(const auto&, const auto& path) { add("flag ", path); }
  constexpr void fact(double, const auto& path) { add("fact ", path); }
};

/// Multiplies each leaf that can be written by its number, and gives the scalars.
struct leaf_writer {
  std::array<xla::Tensor<float, 0>, 15> scalars;
  std::size_t count = 0;
  int next = 2;

  constexpr void cell(auto& s, const auto&) { s.copy_(s.detach() * next++); }
  constexpr void kept(auto& s, const auto&, const auto& path) { cell(s, path); }
  constexpr void tensor(auto& t, const auto&) { t = t * next++; }
  constexpr void scalar(auto& s, const auto&) { scalars[count++] = s.template as<float>(); }
  constexpr void flag(auto& f, const auto&) { f.set(next++ % 2 == 0); }
  constexpr void fact(double, const auto&) {}
};

/// Gives each leaf a value of its own.
struct leaf_filler {
  int next = 1;
  void cell(auto& s, const auto&) { s.copy_(s.detach() * 0 + next++); }
  void kept(auto& s, const auto&, const auto& path) { cell(s, path); }
  void tensor(auto& t, const auto&) { t = t * 0 + next++; }
  void scalar(auto& s, const auto&) { s = next++; }
  void flag(auto&, const auto&) {}
  void fact(double, const auto&) {}
};

struct leaf_reader {
  std::vector<double> values;
  void cell(auto& s, const auto&) { values.push_back(static_cast<double>(s.to_vector().at(0))); }
  void kept(auto& s, const auto&, const auto& path) { cell(s, path); }
  void tensor(auto& t, const auto& path) { cell(t, path); }
  void scalar(auto& s, const auto&) { values.push_back(s.value()); }
  void flag(auto& f, const auto&) { values.push_back(f); }
  void fact(double, const auto&) {}
};

/// The names of what a call brings, as its binder meets it.
struct call_reader final : xla::detail::leaf_visitor {
  using handle = xla::detail::handle;
  using tree_path = xla::tree_path;
  std::vector<std::string> slots, facts;
  void tensor(handle&, const tree_path& path) override { slots.push_back(path.str()); }
  void cell(handle&, const tree_path& path) override { slots.push_back(path.str()); }
  void scalar(xla::Scalar&, const tree_path& path) override { slots.push_back(path.str()); }
  void fact(double, const tree_path& path) override { facts.push_back(path.str()); }
};

constexpr auto write_leaves = [](auto&... all) {
  leaf_writer w;
  xla::detail::visit_arguments(w, all...);
  return w.scalars;
};

template <class... X>
constexpr leaf_list list_symbolic() {
  xla::detail::symbolic_arguments<X...> symbolic;
  leaf_list list;
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    xla::detail::visit_arguments(list, symbolic.template get<I>()...);
  }(std::index_sequence_for<X...>{});
  list.leaves = {};
  return list;
}

/// The names of those of these kinds in an argument, or of all with "argument" before its number.
std::vector<std::string> select(const leaf_list& list, std::string_view kinds, int argument = -1) {
  std::vector<std::string> names;
  for (int i = 0; i < list.count; ++i) {
    const std::string s(list.names[static_cast<std::size_t>(i)].view());
    const auto from = s.find(' ') + 1, end = std::min(s.find(' ', from), s.size());
    if (kinds.find(s.substr(0, from - 1)) == kinds.npos) continue;
    if (argument < 0) names.push_back("argument " + s.substr(from, end - from));
    else if (s[from] == '0' + argument) names.push_back(s.substr(from + 2, end - from - 2));
  }
  return names;
}

}  // namespace

TEST_CASE("every visit of arguments meets the same leaves, by the same names, in one order") {
  const xla::eager_mode_guard eager;
  Tree tree;
  tree.seed = xla::zeros<float>({3});
  const auto heavy = [](std::string_view name, int) { return name == "leaves.1.w"; };
  xla::optim::SGD slow{tree, {.lr = 0.1}, xla::optim::group(heavy, [](auto& o) { o.lr = 1; })};
  xla::optim::ExponentialMovingAverage average{xla::part<&Tree::last>(tree)};

  leaf_list list;
  xla::detail::visit_arguments(list, slow, tree, average);
  const auto all = [](const leaf_list& l) {
    std::vector<std::string> names;
    for (int i = 0; i < l.count; ++i)
      names.emplace_back(l.names[static_cast<std::size_t>(i)].view());
    return names;
  };
  CHECK(all(list) == std::vector<std::string>{"cell 1.leaves.0.w",
                                              "cell 1.leaves.0.seen",
                                              "flag 1.leaves.0.on",
                                              "scalar 1.leaves.0.gain",
                                              "cell 1.leaves.1.w",
                                              "cell 1.leaves.1.seen",
                                              "flag 1.leaves.1.on",
                                              "scalar 1.leaves.1.gain",
                                              "cell 1.tail.0",
                                              "fact 1.tail.1",
                                              "tensor 1.seed",
                                              "cell 1.last.w",
                                              "cell 1.last.seen",
                                              "flag 1.last.on",
                                              "scalar 1.last.gain",
                                              "cell 0.step",
                                              "cell 0.leaves.0.w.0 of 0",
                                              "cell 0.leaves.1.w.0 of 4",
                                              "cell 0.tail.0.0 of 8",
                                              "cell 0.last.w.0 of 11",
                                              "scalar 0.options.lr",
                                              "scalar 0.options.momentum",
                                              "scalar 0.options.dampening",
                                              "scalar 0.options.weight_decay",
                                              "scalar 0.options.nesterov",
                                              "scalar 0.group_options.0.lr",
                                              "scalar 0.group_options.0.momentum",
                                              "scalar 0.group_options.0.dampening",
                                              "scalar 0.group_options.0.weight_decay",
                                              "scalar 0.group_options.0.nesterov",
                                              "cell 2.w.0 of 11",
                                              "cell 2.seen.0 of 12",
                                              "scalar 2.options.decay",
                                              "scalar 2.options.use_buffers"});

  using S = decltype(slow);
  using E = decltype(average);
  static constexpr leaf_list in_constant_evaluation = list_symbolic<S&, Tree&, E&>();
  CHECK(all(in_constant_evaluation) == all(list));

  void* const addresses[] = {&slow, &tree, &average};
  call_reader call;
  xla::detail::arguments_of<S, Tree, E>::visit(addresses, call);
  CHECK(call.slots == select(list, "tensor cell scalar"));
  CHECK(call.facts == select(list, "flag fact"));

  const auto names_in = [](auto& x) {
    std::vector<std::string> names;
    for (const auto& a : xla::state_dict(x)) names.push_back(a.name);
    return names;
  };
  CHECK(names_in(tree) == select(list, "cell", 1));
  CHECK(names_in(slow) == select(list, "cell scalar", 0));
  CHECK(names_in(average) == select(list, "cell scalar", 2));

  leaf_list of_type;
  xla::detail::visit_types<Tree>(
      [&]<class L>(std::type_identity<L>, const auto& path) { of_type.add("", path); });
  CHECK(all(of_type) == select(list, "cell scalar tensor flag fact", 1));
}

TEST_CASE("each leaf of a call is bound to its own slot") {
  const xla::eager_mode_guard eager;
  const auto after = [](auto run) {
    Tree tree;
    tree.seed = xla::zeros<float>({3});
    const auto heavy = [](std::string_view name, int) { return name == "leaves.1.w"; };
    xla::optim::SGD slow{tree, {.lr = 0.1}, xla::optim::group(heavy, [](auto& o) { o.lr = 1; })};
    xla::optim::ExponentialMovingAverage average{xla::part<&Tree::last>(tree)};
    leaf_filler fill;
    xla::detail::visit_arguments(fill, slow, tree, average);
    leaf_reader read;
    for (const auto& s : run(slow, tree, average)) read.values.push_back(s.item());
    xla::detail::visit_arguments(read, slow, tree, average);
    return read.values;
  };
  const auto want = after(write_leaves);
  CHECK(want.size() == 15 + 33);
  CHECK(after(xla::compile(write_leaves)) == want);
  xla::eager_mode(false);
  CHECK(after(write_leaves) == want);
}
