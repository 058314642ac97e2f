// SPDX-License-Identifier: Apache-2.0
// Profiles, explanations and comparisons of runs, for all translation units of a program.
#define XLA_RUNTIME_SOURCE
#include <xla/run/explain.hpp>
#include <xla/run/profile.hpp>
#include <xla/run/trace/compare_runs.hpp>

template struct xla::BasicExplanation<void>;
template std::ostream& xla::operator<< <void>(std::ostream&, const xla::BasicExplanation<void>&);
template class xla::detail::basic_explain_recording<void>;
template bool xla::detail::explain_on_request<void>();
template struct xla::BasicProfile<void>;
template class xla::detail::basic_profile_recording<void>;
template bool xla::detail::profile_on_request<void>();
template xla::MachinePeaks xla::machine_peaks<void>(int);
template std::ostream& xla::operator<< <void>(std::ostream&, const xla::Profile&);
template xla::RunComparison xla::detail::compare_runs<void>(const xla::RunAs&,
                                                            const xla::detail::compared_function&,
                                                            const xla::RunAs&,
                                                            const xla::detail::compared_function&,
                                                            const xla::CompareOptions&);
