// SPDX-License-Identifier: Apache-2.0
#pragma once

// All losses that xla.hpp has. Margin, ranking and likelihood losses are included by name, or by
// functions.hpp.

#include "xla/op/argmax.hpp"
#include "xla/op/derived/cross_entropy.hpp"
#include "xla/op/derived/distance_loss.hpp"
#include "xla/op/derived/probability_loss.hpp"
