// SPDX-License-Identifier: Apache-2.0
#pragma once

// Probability distributions by PyTorch's names, which xla.hpp leaves out.

#include "xla/distributions/bernoulli.hpp"
#include "xla/distributions/categorical.hpp"
#include "xla/distributions/independent.hpp"
#include "xla/distributions/kl.hpp"
#include "xla/distributions/mixture_same_family.hpp"
#include "xla/distributions/normal.hpp"
#include "xla/distributions/uniform.hpp"
#include "xla/xla.hpp"
