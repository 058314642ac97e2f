// SPDX-License-Identifier: Apache-2.0
#pragma once

// All learning-rate schedules. Each family is a header in optim/schedule/.

#include "xla/optim/schedule/cosine.hpp"
#include "xla/optim/schedule/cycle.hpp"
#include "xla/optim/schedule/line.hpp"
#include "xla/optim/schedule/plateau.hpp"
#include "xla/optim/schedule/schedule.hpp"
#include "xla/optim/schedule/sequential.hpp"
#include "xla/optim/schedule/step.hpp"
