// SPDX-License-Identifier: Apache-2.0
#include "run.hpp"

template void run<char_config>(const Options&, const std::string&);
