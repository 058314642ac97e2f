// SPDX-License-Identifier: Apache-2.0
#include "run.hpp"

template void run<nn::seed_decoder>(const Options&, const std::string&);
