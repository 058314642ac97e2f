// SPDX-License-Identifier: Apache-2.0
#include <xla/xla.hpp>

float one() { return xla::sum(xla::ones<float>({2, 3})).item(); }
