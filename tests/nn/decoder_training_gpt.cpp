// SPDX-License-Identifier: Apache-2.0
#define XLA_TEST_DECODER test::tiny_gpt
#include "decoder_training.cpp"
