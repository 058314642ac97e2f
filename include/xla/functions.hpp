// SPDX-License-Identifier: Apache-2.0
#pragma once

// The functions of tensors that xla.hpp leaves out, as most programs need none of them.

#include "xla/xla.hpp"

#include "xla/op/derived/activation_more.hpp"
#include "xla/op/derived/broadcast.hpp"
#include "xla/op/derived/diagonal.hpp"
#include "xla/op/derived/kron.hpp"
#include "xla/op/derived/likelihood_loss.hpp"
#include "xla/op/derived/margin_loss.hpp"
#include "xla/op/derived/matrix.hpp"
#include "xla/op/derived/nan.hpp"
#include "xla/op/derived/quantile.hpp"
#include "xla/op/derived/ranking_loss.hpp"
#include "xla/op/derived/shrink.hpp"
#include "xla/op/derived/special.hpp"
#include "xla/op/derived/stacking.hpp"
#include "xla/op/derived/unique.hpp"
#include "xla/op/derived/unit_length.hpp"
#include "xla/op/cummax.hpp"
#include "xla/op/erfinv.hpp"
#include "xla/op/gamma.hpp"
#include "xla/op/inverse_trigonometric.hpp"
#include "xla/op/logcumsumexp.hpp"
#include "xla/op/scatter_reduce.hpp"
