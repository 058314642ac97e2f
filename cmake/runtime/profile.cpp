// SPDX-License-Identifier: Apache-2.0
// Profiles, for all translation units of a program.
#define XLA_RUNTIME_SOURCE
#include <xla/run/profile.hpp>

template struct xla::BasicProfile<void>;
template class xla::detail::basic_profile_recording<void>;
template bool xla::detail::profile_on_request<void>();
template xla::MachinePeaks xla::machine_peaks<void>(int);
template std::ostream& xla::operator<< <void>(std::ostream&, const xla::Profile&);
