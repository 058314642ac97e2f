// SPDX-License-Identifier: Apache-2.0
// Programs drawn at random mean the same in every mode: every pass, the memory plan, in-place state.
#include "support/modes.hpp"
#include "support/programs.hpp"

using test::numbers;

TEMPLATE_TEST_CASE_SIG("a random program is the same in every mode", "", ((int Seed), Seed), 1, 2,
                       3, 4, 5) {
  const xla::eager_mode_guard eager;
  for (const std::int64_t n : {5, 1, 17}) {
    auto v = xla::Parameter<float, 2>::like(numbers<float>({n, n}));
    auto w = v;
    v.copy_(numbers<float>({n, n}, 1) * 0.25);
    w.copy_(numbers<float>({n, n}, 2) * 0.25);
    INFO("size " << n);
    test::check_modes(test::random_program<Seed, 30>{}, v, w, numbers<float>({n, n}, 3),
                      numbers<float>({n, n}, 4));
  }
}
