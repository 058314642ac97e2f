# SPDX-License-Identifier: Apache-2.0
# xla_test(<folder/name> [LABELS core asan threads isa] [LIBRARIES <target>...]): see CMakeLists.txt beside.

xla_test(kernel/gemm LABELS isa)
xla_test(kernel/philox LABELS core isa)
xla_test(kernel/pool LABELS core threads)

xla_test(transform/passes LABELS core)
xla_test(transform/random_programs LABELS core asan)

xla_test(run/metrics LABELS core threads)
xla_test(run/eager LABELS core)
xla_test(run/traced LABELS core asan threads)
xla_test(run/compiled LABELS core asan threads)
xla_test(run/debug LABELS core)
xla_test(run/allocation)

xla_test(op/arithmetic)
xla_test(op/compare)
xla_test(op/logical)
xla_test(op/where)
xla_test(op/cast LABELS asan)
xla_test(op/exponential LABELS isa)
xla_test(op/tanh LABELS isa)
xla_test(op/root LABELS isa)
xla_test(op/minmax)
xla_test(op/relu)
xla_test(op/reduce LABELS asan isa)
xla_test(op/argmax)
xla_test(op/matmul LABELS core asan)
xla_test(op/permute LABELS asan)
xla_test(op/reshape LABELS core asan)
xla_test(op/create LABELS core asan)
xla_test(op/row LABELS core asan)
xla_test(op/embedding LABELS core asan)
xla_test(op/random LABELS core)
xla_test(op/derived/softmax LABELS core isa)
xla_test(op/derived/loss LABELS core asan)

xla_test(nn/layers LABELS core)
xla_test(optim/optimizer LABELS core)

xla_test(contract LABELS core asan isa)
xla_test(contract_errors LABELS core asan)
xla_test(contract_modules LABELS core asan)
xla_test(contract_sizes LABELS core asan)
xla_test(contract_state LABELS core asan)
xla_test(contract_static LABELS core asan)

xla_test(data/loader LABELS core)

xla_test(io/idx LABELS core asan)
xla_test(io/progress LABELS core)
xla_test(io/svg LABELS core)
xla_test(io/text LABELS core asan)

if(TARGET xla::gzip)
  xla_test(ext/gzip LABELS asan LIBRARIES xla::gzip)
endif()
