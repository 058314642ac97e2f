# SPDX-License-Identifier: Apache-2.0
# xla_test(<folder/name> [LABELS core asan threads isa] [LIBRARIES <target>...]): see CMakeLists.txt beside.

xla_test(run/metrics LABELS core threads)
xla_test(run/philox LABELS core isa)

xla_test(data/loader LABELS core)

xla_test(io/idx LABELS core asan)
xla_test(io/progress LABELS core)
xla_test(io/svg LABELS core)
xla_test(io/text LABELS core asan)

if(TARGET xla::gzip)
  xla_test(ext/gzip LABELS asan LIBRARIES xla::gzip)
endif()
