// SPDX-License-Identifier: Apache-2.0
// 7. A regression on a table: read CSV, train stop when nothing gets better, print R2.
#include <cmath>
#include <cstdio>
#include <fstream>

#include <xla/data/subset.hpp>
#include <xla/io/csv.hpp>
#include <xla/train/loop.hpp>
#include <xla/xla.hpp>

struct Model {
  xla::nn::Linear in{3, 32}, out{32, 1};
  constexpr auto operator()(xla::Tensor<float, 2> x) const { return out(xla::tanh(in(x))); }
  XLA_MODULE(in, out)
};

constexpr auto step_fn = [](auto& model, auto& data, auto& target, auto& optimizer) {
  optimizer.zero_grad();
  auto loss = xla::mse_loss(model(data), target);
  loss.backward();
  optimizer.step();
  return loss;
};

// The flight of a ball: distance from speed (m/s), angle (degrees) and height (m), in a file.
void write_table(const char* path) {
  std::ofstream file{path};
  file << "speed,angle,height,distance\n";
  xla::manual_seed(7);
  const auto random = xla::rand<double>({1000, 3}).to_vector();
  for (std::size_t i = 0; i < random.size(); i += 3) {
    const double v = 5 + 15 * random[i], angle = 80 * random[i + 1], h = 2 * random[i + 2];
    const double x = v * std::cos(angle * 0.01745), y = v * std::sin(angle * 0.01745);
    const double distance = x * (y + std::sqrt(y * y + 19.62 * h)) / 9.81;
    file << v << ',' << angle << ',' << h << ',' << distance << '\n';
  }
}

// Mean 0 and deviation 1 in every column, as a network likes it.
xla::Tensor<float, 2> normalized(const xla::Tensor<float, 2>& x) {
  const auto difference = x - xla::mean(x, {0}, xla::keepdim);
  return difference / xla::sqrt(xla::mean(difference * difference, {0}, xla::keepdim));
}

int main() {
  xla::eager_mode(true);
  const char* const path = "xla_07_table.csv";
  write_table(path);
  const auto inputs = xla::io::read_csv(path, {.columns = {"speed", "angle", "height"}});
  const auto outputs = xla::io::read_csv(path, {.columns = {"distance"}});
  std::remove(path);
  const xla::data::TensorDataset all{normalized(inputs.values), normalized(outputs.values)};
  const auto [training, held_out] = xla::data::random_split(all, {0.8, 0.2}, 1);

  xla::manual_seed(1);
  Model model;
  xla::optim::AdamW optimizer{model, {.lr = 1e-2, .weight_decay = 0}};
  xla::data::DataLoader loader{training, {.batch_size = 32, .shuffle = true, .prefetch = 2}};
  xla::data::DataLoader test{held_out, {.batch_size = held_out.size()}};
  const auto r2 = [&] {  // of the held-out rows: 1 is perfect, 0 as good as their mean
    const auto [x, y] = *test.begin();
    const auto off = y - xla::mean(y);
    const auto left = xla::mse_loss(model(x), y) / xla::mean(off * off);
    return 1 - static_cast<double>(left.item());
  };
  const auto report = xla::training::fit(
      model, xla::compile(step_fn, {.name = "table_step"}), loader,
      {.epochs = 60,
       .validate = r2,
       .validation_name = "R2",
       .higher_is_better = true,
       .patience = 20,
       .schedule = [&](const auto& at) { optimizer.options.lr = 1e-2 * (1 - at.part); }},
      optimizer);
  std::printf("R2 of the held-out rows: %.3f\n", report.best);
  //> R2 of the held-out rows:
  return report.best > 0.98 ? 0 : 1;
}
