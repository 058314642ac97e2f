// SPDX-License-Identifier: Apache-2.0
#pragma once

// The README's step function, as all contestants of the library run it.

namespace bench {

/// The contract's step function.
inline constexpr auto step_fn = [](auto& model, auto& data, auto& target, auto& loss_fn,
                                   auto& optimizer) {
  optimizer.zero_grad();
  auto logits = model(data);
  auto loss = loss_fn(logits, target);
  loss.backward();
  optimizer.step();
  return loss;
};

}  // namespace bench
