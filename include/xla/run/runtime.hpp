// SPDX-License-Identifier: Apache-2.0
#pragma once

// What tensors need to work at run time: kernels, modes, backward. Layers include this; ops do not.
#include "xla/kernel/op/embedding.hpp"
#include "xla/kernel/op/gather.hpp"
#include "xla/kernel/op/map.hpp"
#include "xla/kernel/op/matmul.hpp"
#include "xla/kernel/op/movement.hpp"
#include "xla/kernel/op/random.hpp"
#include "xla/kernel/op/reduce.hpp"
#include "xla/kernel/op/scan.hpp"
#include "xla/kernel/op/slice.hpp"
#include "xla/kernel/op/sort.hpp"
#include "xla/op/index.hpp"
#include "xla/run/backward.hpp"
#include "xla/run/machine.hpp"
#include "xla/tensor/methods.hpp"
