// SPDX-License-Identifier: Apache-2.0
// Loaded before PyTorch's libraries. MKL asks this whether the processor is Intel's, and otherwise
// leaves AVX-512 unused: half of the speed of matrix products where others have it.
extern "C" int mkl_serv_intel_cpu_true() { return 1; }
