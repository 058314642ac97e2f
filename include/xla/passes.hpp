// SPDX-License-Identifier: Apache-2.0
#pragma once

// Passes of your own: a function of xla::Graph that observes or changes the graph of a step before
// it becomes a program. One class serves both modes that have graphs.
//
//     struct Twice {  // x + x as x * 2
//       static constexpr auto name = "twice";
//       constexpr void operator()(xla::Graph& graph) const {
//         for (xla::Node node : graph.nodes())
//           if (node.is<xla::op::add>() && node.input(0) == node.input(1)) {
//             const xla::Node two = graph.constant(2.f);
//             graph.replace(node, graph.add<xla::op::mul, float>({node.input(0), two}));
//           }
//       }
//     };
//
// Compiled mode: xla::compile<xla::tags::with<Twice>>(step). The pass runs in the compiler, once
// for each graph of the step. Its class has a default constructor and a constexpr operator(), which
// prints nothing and uses no global variable. What it has found stays in its members:
// xla::observe<Census>(step, arguments...) returns the object. Sizes that a call decides are -1.
//
// Traced mode: const auto handle = xla::register_pass(Twice{}), or xla::register_pass("census",
// [&](xla::Graph& graph) { … }) with any function. The pass runs when a graph is made, not when it
// runs again. Cached graphs from before are made again with the pass; after handle.remove(), or at
// the end of the handle's lifetime, the old ones are used again. Passes run one at a time, in the
// order of their registration. If a pass throws, sync() rethrows, and the tensors stay pending. It
// must not read pending tensors. Compiled functions do not run registered passes; eager mode has no
// graphs.
//
// A pass sees the graph as the step made it, with its gradients, before the library's passes.
// `static constexpr auto after = "dead";`, or a last argument of register_pass(), moves it after
// one of these; Compiled::graph(stage) has their names. Up to dead it may change the graph; after
// later ones it may only observe. graph("twice", x) shows the graph after the pass. The steps of a
// loop (xla/loop.hpp) are in the graph once; Node::loop() distinguishes them from their
// surroundings. A pass changes them like other nodes. Traced mode has no loops: each step is in the
// graph.
//
// Errors are reported with the pass's name: by the compiler, or by sync() as a runtime_error. Each
// changed graph is verified. Whether a pass preserves values is its own choice; the library's
// passes keep every bit. backward() outside of a compiled function differentiates the body as it is
// written, without the pass.

#include "xla/run/call/observe.hpp"
#include "xla/run/state/registered_passes.hpp"
#include "xla/transform/user_pass.hpp"
