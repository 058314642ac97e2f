// SPDX-License-Identifier: Apache-2.0
// 16. Sequences: recurrent layers, their states, sequences of different lengths, and a network that
// writes text one character at a time.
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <xla/loop.hpp>
#include <xla/nn/recurrent.hpp>
#include <xla/xla.hpp>

namespace nn = xla::nn;
using Tokens = xla::Tensor<std::int64_t, 2>;  // (time, batch)
using State = xla::Tensor<float, 3>;          // (layers, batch, features)

// Predicts the next character of a text from each one. A state goes in and out, so that a text can
// be read in pieces.
struct Writer {
  nn::Embedding embed{128, 16};
  nn::GRU<16, 64> gru;
  nn::Linear head{64, 128};
  constexpr auto operator()(const Tokens& text, const State& h) const {
    const auto [ys, last] = gru(embed(text), h);
    return std::pair(head(ys), last);
  }
  XLA_MODULE(embed, gru, head)
};

// One piece of the text. The next piece goes on from its state, which is detached: gradients end at
// the piece's beginning (truncated backpropagation through time).
constexpr auto step_fn = [](auto& model, const auto& now, const auto& next, const auto& h,
                            auto& optimizer) {
  optimizer.zero_grad();
  const auto [logits, last] = model(now, h);
  auto loss = xla::cross_entropy(xla::flatten<0, 1>(logits), xla::flatten(next));
  loss.backward();
  xla::optim::clip_grad_norm_(model, 1);
  optimizer.step();
  return std::pair(loss, last.detach());
};

// Greedy: each step is given the character that the step before has chosen. times says how many.
constexpr auto write_fn = [](auto& model, const auto& first, const auto& h, const auto& times) {
  const auto step = [&](const std::pair<Tokens, State>& last, const auto&) {
    const auto [logits, state] = model(last.first, last.second);
    const Tokens token = xla::argmax(logits, -1);
    return std::pair(std::pair(token, state), token);
  };
  return xla::scan(step, std::pair(first, h), times).second;
};

Tokens tokens(const std::string& text) {
  const std::vector<std::int64_t> bytes(text.begin(), text.end());
  return xla::from_blob(bytes.data(), {static_cast<std::int64_t>(bytes.size()), 1});
}

int main() {
  xla::manual_seed(1);
  // A layer reads (time, batch, features), from a state of zeros, and returns its h of all steps
  // and its last state, of an LSTM the pair of h and c. Another length is no other program.
  nn::LSTM<3, 8> lstm;
  auto read = xla::compile(lstm);
  for (int time : {5, 9}) {
    const auto [ys, last] = read(xla::randn<float>({time, 2, 3}));
    std::printf("%d steps, %d features, c of %d\n", int(ys.size(0)), int(ys.size(2)),
                int(last.second.size(2)));
    //> 9 steps, 8 features, c of 8
  }

  // Sequences of different lengths are one batch: padded, with their lengths. Behind its end a
  // sequence's state stays what it was, whatever is there.
  const auto lengths = xla::tensor<std::int64_t>({4, 2});
  const auto xs = xla::randn<float>({4, 2, 3});
  const auto [packed, ends] = lstm(nn::pack_padded_sequence(xs, lengths));
  const auto ys = nn::pad_packed_sequence(packed).first;  // zeros after the ends
  const auto difference = xla::select(xla::select(ends.first, 0, 0) - xla::select(ys, 0, 1), 0, 1);
  std::printf("%g %g\n", xla::max(xla::abs(difference)).item(), xla::sum(ys[3][1]).item());  //> 0 0

  // Pieces of twelve characters of a text that begins again and again.
  const std::string line = "the quick brown fox jumps over the lazy dog and ";
  const auto text = tokens(line + line.substr(0, 1));
  const int length = static_cast<int>(line.size()), piece = 12;
  Writer model;
  xla::optim::Adam optimizer{model, {.lr = 0.01f}};
  auto train = xla::compile(step_fn);
  auto h = xla::zeros<float>({1, 1, 64});
  float loss = 0;
  for (int i = 0; i < 400; ++i) {
    const int at = i * piece % length;
    const auto [now_loss, last] = train(model, xla::narrow(text, 0, at, piece),
                                        xla::narrow(text, 0, at + 1, piece), h, optimizer);
    loss = now_loss.item();
    h = last;
  }
  std::printf("learned: %s\n", loss < 0.1f ? "yes" : "no");  //> learned: yes

  // It has read to the end of the line, and begins it again: thirty characters in one call.
  auto write = xla::compile(write_fn);
  const auto written = write(model, tokens("t"), h, xla::zeros<float>({30, 1}));
  std::string out = "t";
  for (const auto c : written.to_vector()) out += static_cast<char>(c);
  std::printf("%s\n", out.c_str());  //> the quick brown fox jumps over
}
