// SPDX-License-Identifier: Apache-2.0
#include "trainer.hpp"

void run_lstm(const Options& o) { run_model<LstmModel<false>, LstmModel<true>>(o); }
