// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "xla/tensor/impl.hpp"
namespace xla::detail {
inline void make_ready(impl&) {}
inline void wait_for(buffer&) {}
}
