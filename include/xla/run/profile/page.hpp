// SPDX-License-Identifier: Apache-2.0
#pragma once

// The beginning of the HTML page that shows a profile: its style and its tables. The page loads
// nothing from elsewhere; script.hpp is its other half.

namespace xla::detail {

/// A page that shows a profile: this text, the profile as JSON, and then the script. It loads
/// nothing. All text of the profile is inserted as text nodes.
inline constexpr char profile_page_head[] = R"html(<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>Profile</title>
<style>
:root { color-scheme: light dark; --bg: #f6f7f9; --card: #fff; --ink: #1b2129; --soft: #5b6675;
  --line: #dde1e7; --grid: #eceff3; --pick: #d6336c; --on: #fff; --bar: #c9d8ef;
  --product: #2563c9; --map: #b4610a; --row: #0b7a75; --reduce: #7a3fc0; --move: #687280;
  --loop: #8a5a00; --slices: #5a7d0c; --parallel: #a33b57; --start: #1f6f9f; --wait: #b23a3a; }
@media (prefers-color-scheme: dark) { :root { --bg: #12151a; --card: #1a1f26; --ink: #e4e8ee;
  --soft: #98a3b3; --line: #2d3440; --grid: #242a33; --pick: #ff7aa8; --on: #0d1117; --bar: #2c4468;
  --product: #74a9ff; --map: #f0a04b; --row: #4cc9c0; --reduce: #bd93f9; --move: #9aa5b5;
  --loop: #e3c05a; --slices: #a8cf5a; --parallel: #f08fa8; --start: #6fc3ef; --wait: #ff8f8f; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 20px 24px 48px; max-width: 1440px; background: var(--bg);
  color: var(--ink); font: 14px/1.45 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
h1 { font-size: 22px; margin: 0; } h2 { font-size: 15px; margin: 0 0 2px; }
p { margin: 0; color: var(--soft); font-size: 12.5px; }
code, .mono, td.n, svg text { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas,
  "DejaVu Sans Mono", monospace; font-size: 12px; }
header { display: flex; gap: 8px 16px; align-items: baseline; flex-wrap: wrap; }
#signature { overflow-wrap: anywhere; max-height: 3.2em; overflow-y: auto; }
select, input { font: inherit; color: inherit; background: var(--card); border-radius: 6px;
  border: 1px solid var(--line); padding: 4px 8px; max-width: 100%; }
#tiles { display: grid; gap: 12px; margin: 14px 0;
  grid-template-columns: repeat(auto-fit, minmax(170px, 1fr)); }
.card, #tiles div { background: var(--card); border: 1px solid var(--line); border-radius: 10px; }
#tiles div { padding: 10px 14px; } #tiles b { display: block; font-size: 20px; font-weight: 650; }
#tiles span { color: var(--soft); font-size: 12px; }
.card { padding: 14px 16px; margin-bottom: 14px; min-width: 0; }
.two { display: grid; grid-template-columns: minmax(0, 1fr) 380px; gap: 14px; }
@media (max-width: 1000px) { .two { grid-template-columns: minmax(0, 1fr); } }
.scroll { overflow: auto; max-height: 620px; margin-top: 8px; }
svg { display: block; margin-top: 8px; } svg text { fill: var(--ink); font-size: 11px; }
svg .soft { fill: var(--soft); } svg .grid { stroke: var(--grid); }
.product { --kind: var(--product); } .map { --kind: var(--map); } .row { --kind: var(--row); }
.reduce { --kind: var(--reduce); } .move { --kind: var(--move); }
.loop { --kind: var(--loop); } .slices { --kind: var(--slices); } .parallel { --kind: var(--parallel); }
.start { --kind: var(--start); } .wait { --kind: var(--wait); }
.scope { --kind: var(--loop); } .op { --kind: var(--map); } .plan { --kind: var(--product); }
rect.box { fill: var(--kind); stroke: var(--card); stroke-width: .6; cursor: pointer; }
rect.idle { fill-opacity: .28; } text.in { fill: var(--on); pointer-events: none; }
circle { fill: var(--kind); fill-opacity: .75; cursor: pointer; }
path.edge { fill: none; stroke: var(--line); stroke-width: 1.2; }
path.edge.picked { stroke: var(--pick); stroke-width: 2; }
rect.picked, circle.picked { stroke: var(--pick); stroke-width: 2.5; }
#graph rect.box { fill: var(--card); stroke: var(--kind); stroke-width: 1.5; }
#graph rect.heat { fill: var(--kind); fill-opacity: .3; pointer-events: none; }
#graph rect.box.picked { stroke: var(--pick); stroke-width: 2.5; }
table { border-collapse: collapse; width: 100%; }
th { position: sticky; top: 0; background: var(--card); text-align: right; cursor: pointer;
  font-weight: 600; font-size: 12px; padding: 4px 8px; border-bottom: 1px solid var(--line);
  white-space: nowrap; user-select: none; z-index: 1; }
th:nth-child(2), td:nth-child(2) { text-align: left; }
th[aria-sort=descending]::after { content: " ↓"; }
th[aria-sort=ascending]::after { content: " ↑"; }
td { padding: 3px 8px; border-bottom: 1px solid var(--grid); white-space: nowrap; }
td.n { text-align: right; font-variant-numeric: tabular-nums; }
tbody tr { cursor: pointer; } tbody tr:hover { background: var(--grid); }
tbody tr.picked { box-shadow: inset 3px 0 var(--pick); background: var(--grid); }
.meter { background: linear-gradient(to right, var(--bar) var(--w), transparent var(--w)); }
i.dot { display: inline-block; width: 9px; height: 9px; border-radius: 2px; margin-right: 7px;
  background: var(--kind); }
#kinds { display: flex; height: 16px; border-radius: 4px; overflow: hidden; margin: 6px 0;
  gap: 1px; } #kinds div { background: var(--kind); }
#legend { display: flex; flex-wrap: wrap; gap: 2px 16px; }
#legend span { font-size: 12.5px; } dl { margin: 8px 0 0; display: grid; gap: 3px 12px;
  grid-template-columns: max-content minmax(0, 1fr); font-size: 12.5px; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
dd a { color: inherit; cursor: pointer; text-decoration: underline dotted; }
#tip { position: fixed; display: none; pointer-events: none; white-space: pre-line; z-index: 9;
  background: var(--ink); color: var(--bg); border-radius: 6px; padding: 6px 9px; font-size: 12px;
  max-width: 420px; }
</style></head><body>
<header><h1 id="name"></h1><select id="which" hidden></select><p id="signature" class="mono"></p>
</header>
<div class="card" id="scopecard" hidden><h2>Scopes</h2><p>What the program names, and what ran in
it on each thread: ops of eager mode, compiled functions, graphs. Wheel, dragging, double click as
below.</p><div id="scopes"></div></div>
<main id="plans"><div id="tiles"></div>
<div class="card"><div id="kinds"></div><div id="legend"></div></div>
<div class="card"><h2>Timeline</h2><p>Steps on each thread. Wheel zooms, dragging moves, a double
click shows all; a click picks a step everywhere. Pale: the step goes on, the thread waits.</p>
<div id="timeline"></div></div>
<div class="two"><div class="card"><header><h2>Steps</h2>
<input id="filter" placeholder="filter" aria-label="filter steps"></header>
<div class="scroll"><table id="steps"><thead></thead><tbody></tbody></table></div></div>
<div><div class="card"><h2 id="picked"></h2><dl id="details"></dl></div>
<div class="card"><h2>Roofline</h2><p id="roofnote"></p><div id="roof"></div></div></div></div>
<div class="card"><h2>Graph</h2><p>Steps below those whose results they read; the filling is the
share of the longest step.</p><div class="scroll" id="graph"></div></div>
<div class="card"><h2>Memory</h2><p>The arena: what is where (up), from the step that makes it to
the last that needs it (right). Colours are those of the steps that make the values.</p>
<div id="memory"></div></div></main>
<div id="tip"></div>
<script type="application/json" id="data">)html";

}  // namespace xla::detail
