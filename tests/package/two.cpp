// SPDX-License-Identifier: Apache-2.0
#include <xla/xla.hpp>

float two() { return xla::sum(xla::ones<float>({2, 3})).item(); }
