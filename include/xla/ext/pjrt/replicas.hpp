// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <utility>
#include <vector>

#include "xla/base/error.hpp"
#include "xla/ext/pjrt/buffer.hpp"
#include "xla/ext/pjrt/several.hpp"
#include "xla/run/plan/fingerprint.hpp"
#include "xla/run/state/generator.hpp"
#include "xla/run/world/now.hpp"

namespace xla::detail {

/// Runs a program in which replicas exchange: as one executable, each replica on the plugin's
/// device of its ordinal. They meet at the call; when all have brought their arguments, one of them
/// runs it for all. What one throws before, or does otherwise, ends the call on all of them, and
/// nothing has been written.
class pjrt_replicas final : public pjrt_on_several {
 public:
  pjrt_replicas(const engine& by, const ext::pjrt::client& on, sized_program&& p)
      : pjrt_on_several(by, on, std::move(p), on.on_host(), world_now()),
        in_place_(on.on_host()),
        told_(whole_fingerprint_of(p_)) {
    for (const stablehlo_argument& a : text_.written.arguments)
      if (in_place_ && a.is != role::room && a.output >= 0) p_.in_place[a.output] = true;
  }

  void run(const run_arguments& with) override {
    checks_.run(with, true);
    if (text_.results.empty()) return;
    replica& here = *replica_now();
    std::vector<ext::pjrt::buffer> arguments, results;
    share mine{executable_.get(), {}, std::vector<device_buffer*>(text_.results.size())};
    for (int i = 0; i < text_.arguments.size(); ++i)
      mine.in.push_back(arguments.emplace_back(bring(i, with, here.ordinal)).get());
    meet(here, mine);
    for (int i = 0; i < text_.results.size(); ++i)
      results.emplace_back(on_, mine.out[i], text_.results[i], here.ordinal);
    for (int i = 0; i < text_.results.size(); ++i) keep(results[i], *with.outputs[i]);
  }

 private:
  /// What a replica brings to the call, and gets of it.
  struct share {
    const ext::pjrt::executable* program;
    std::vector<device_buffer*> in, out;
  };

  ext::pjrt::buffer bring(int i, const run_arguments& with, int device) const {
    const stablehlo_argument& a = text_.written.arguments[i];
    const argument_words words(a, with);
    const void* from = home_of(a, with, words);
    const bool lent = in_place_ && from != words.words;
    auto keeps = lent ? host_memory::read_in_place : host_memory::copied;
    if (in_place_ && a.output >= 0) {
      void* const to = with.outputs[a.output]->memory;
      if (a.is != role::room && to != from) std::memcpy(to, from, text_.arguments[i].bytes());
      from = to;
      keeps = host_memory::written_in_place;
    }
    return {on_, on_.put(from, text_.arguments[i], keeps, device), text_.arguments[i], device};
  }
  void meet(replica& here, share& mine) const {
    fingerprint told = told_;
    if (!p_.source.word_ops) told.seed = generator::instance().get().seed;
    const exchange_piece piece{.out = &mine, .count = 1};
    here.run({.what = exchange::kind::program,
              .pieces = &piece,
              .piece_count = 1,
              .program = &told,
              .run = &run_all});
  }
  static void run_all(void* const* shares, int replicas) {
    std::vector<device_buffer* const*> in;
    std::vector<device_buffer**> out;
    const ext::pjrt::executable* const first = static_cast<share*>(shares[0])->program;
    for (int r = 0; r < replicas; ++r) {
      share& s = *static_cast<share*>(shares[r]);
      if (s.program != first)
        throw runtime_error(
            "xla: replicas have compiled their program for other devices: set_device_count() was "
            "called in between");
      in.push_back(s.in.data());
      out.push_back(s.out.data());
    }
    first->execute_all(in.data(), out.data());
  }
  void keep(const ext::pjrt::buffer& from, buffer& to) const {
    if (!in_place_) return on_.read(from.get(), from.type(), to.memory);
    if (const void* const at = from.address(); at != to.memory)
      std::memcpy(to.memory, at, from.type().bytes());
  }

  const bool in_place_;
  const fingerprint told_;  // to the others, less the seed
};

}  // namespace xla::detail
