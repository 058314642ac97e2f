// error: scan_layers: blocks 0 and 2 differ in by: its values differ. The body runs once for all blocks
// error: scan_layers: blocks 0 and 1 differ in linear.weight: shapes \(4, 4\) and \(4, 3\)
// error: scan_layers: blocks 0 and 1 differ in drop.training: one of them trains and the other evaluates
// error: scan_layers: a block writes its parameter linear.weight
// error: matmul: cannot multiply .*, in the body of scan_layers .*, in module blocks.0-2.linear
// error: scan_layers: a carry of shape \(\?, \?\) became one of shape \(\?, 8\)
#include <array>
#include <xla/loop/scan_layers.hpp>
#include <xla/xla.hpp>

using Matrix = xla::Tensor<float, 2>;

struct Block {
  double by = 1;
  xla::nn::Linear linear{4, 4};
  xla::nn::Dropout drop;
  constexpr Matrix operator()(const Matrix& x) const { return drop(linear(x) * by); }
  XLA_MODULE(by, linear, drop)
};
template <int Other>
struct Model {
  std::array<Block, 3> blocks;
  constexpr Model() {
    if (Other == 1) blocks[2].by = 2;
    if (Other == 2) blocks[1].linear = xla::nn::Linear(3, 4);
  }
  XLA_MODULE(blocks)
};
constexpr auto run = [](auto& m, auto& x) { return xla::scan_layers(m.blocks, x); };

void numbers(Model<1> m, Matrix x) { xla::compile(run)(m, x); }
void sizes(Model<2> m, Matrix x) { xla::compile(run)(m, x); }
void flags(Model<0> m, Matrix x) {
  xla::compile([](auto& model, auto& v) {
    model.blocks[0].drop.train();
    model.blocks[1].drop.eval();
    return xla::scan_layers(model.blocks, v);
  })(m, x);
}

struct Writes {
  xla::nn::Linear linear{4, 4};
  constexpr Matrix operator()(const Matrix& x) const {
    linear.weight.copy_(linear.weight * 0.5f);
    return linear(x);
  }
  XLA_MODULE(linear)
};
struct WritingModel {
  std::array<Writes, 2> blocks;
  XLA_MODULE(blocks)
};
void writes(WritingModel m, Matrix x) { xla::compile(run)(m, x); }

struct Fits {
  xla::nn::Linear linear{4, 4};
  constexpr Matrix operator()(const Matrix& x) const { return linear(xla::cat<1>(linear(x), x)); }
  XLA_MODULE(linear)
};
struct FittingModel {
  std::array<Fits, 3> blocks;
  XLA_MODULE(blocks)
};
void fits(FittingModel m, Matrix x) { xla::compile(run)(m, x); }

struct Grows {
  xla::nn::Linear linear{4, 4};
  constexpr Matrix operator()(const Matrix& x) const { return xla::cat<1>(x, linear(x)); }
  XLA_MODULE(linear)
};
struct GrowingModel {
  std::array<Grows, 2> blocks;
  XLA_MODULE(blocks)
};
void grows(GrowingModel m, Matrix x) { xla::compile(run)(m, x); }
