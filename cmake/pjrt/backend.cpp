// SPDX-License-Identifier: Apache-2.0
// XLA as a backend, for programs that link xla::pjrt.
#undef XLA_EXTERN_PJRT
#include <xla/ext/pjrt.hpp>

template xla::Backend xla::pjrt<void>(std::string_view);
template bool xla::detail::add_pjrt<void>();
