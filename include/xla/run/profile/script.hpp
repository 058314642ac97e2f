// SPDX-License-Identifier: Apache-2.0
#pragma once

// The script of the HTML page that shows a profile. It is JavaScript in a string, kept separate
// because it is long.

namespace xla::detail {

/// The rest of a profile's page, which draws it.
inline constexpr char profile_page_tail[] = R"html(</script>
<script>
'use strict';
const root = document.documentElement;
addEventListener('error', e => { root.dataset.error = e.message; });
const data = JSON.parse(document.getElementById('data').textContent);
const $ = id => document.getElementById(id);
const kinds = {product: 'products', map: 'fused maps', row: 'fused rows', reduce: 'reductions',
  loop: 'loops', slices: 'slice by slice', parallel: 'side by side', start: 'exchanges started', wait: 'exchanges waited for', move: 'the rest'};
let f, total, view, picked = -1, order = {column: 2, down: true};

function add(parent, name, attributes = {}, text) {
  const svg = name === 'svg' || parent instanceof SVGElement;
  const e = svg ? document.createElementNS('http://www.w3.org/2000/svg', name)
                : document.createElement(name);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  if (text !== undefined) e.textContent = text;
  parent.append(e);
  return e;
}
function unit(x, names, step) {
  let u = 0;
  while (u + 1 < names.length && x >= 0.9995 * step) { x /= step; ++u; }
  return (x < 9.995 ? x.toFixed(2) : x < 99.95 ? x.toFixed(1) : x.toFixed(0)) + ' ' + names[u];
}
const time = s => unit(s * 1e9, ['ns', 'µs', 'ms', 's'], 1000);
const size = b => unit(b, ['B', 'KB', 'MB', 'GB'], 1024);
const rate = (x, what) => unit(x, ['', 'K', 'M', 'G', 'T'], 1000) + what + '/s';
const percent = x => (100 * x).toFixed(1) + ' %';
const short = (s, n) => s.length <= n ? s : n < 3 ? '' : s.slice(0, n - 1) + '…';
const bytes = s => s.bytes_read + s.bytes_written;
const threads = s => new Set([0, ...s.spans.map(x => x.thread)]).size;
const flopShare = s => s.seconds ? s.flops / s.seconds /
  (s.type === 'float64' ? data.peaks.flops / 2 : data.peaks.flops) : 0;
const byteShare = s => s.seconds ? bytes(s) / s.seconds / data.peaks.bytes : 0;
function tipOf(s) {
  return `#${s.index} ${s.name}\n` + (s.once ? 'once, when the memory was made' :
    `${time(s.seconds)}, ${percent(s.seconds / total)} of the steps` +
    (s.flops ? `\n${rate(s.flops / s.seconds, 'FLOP')}, ${percent(flopShare(s))} of peak` : '') +
    `\n${rate(bytes(s) / s.seconds, 'B')}, ${percent(byteShare(s))} of memory`);
}
function mark(e, s) {
  e.dataset.step = s.index;
  e.dataset.tip = tipOf(s);
  return e;
}
const anchor = (x, w) => x > w - 30 ? 'end' : 'middle';
/* Round numbers in a range, about n of them. */
function ticks(from, to, n) {
  const raw = (to - from) / n, power = 10 ** Math.floor(Math.log10(raw || 1));
  const step = [1, 2, 5, 10].map(x => x * power).find(x => x >= raw) || 1, out = [];
  for (let i = Math.ceil(from / step); i * step <= to * (1 + 1e-9); ++i) out.push(i * step);
  return out;
}

function tiles() {
  const box = $('tiles'), p = data.peaks;
  box.replaceChildren();
  const tile = (value, note) => {
    const t = add(box, 'div');
    add(t, 'b', {}, value);
    add(t, 'span', {}, note);
  };
  tile(time(f.seconds), f.calls > 1 ? `a call, median of ${f.calls}` : 'the call');
  tile(f.steps.length + ' steps', `on ${f.threads} thread${f.threads > 1 ? 's' : ''}`);
  tile(rate(f.flops / f.seconds, 'FLOP'), percent(f.flops / f.seconds / p.flops) + ' of ' +
    rate(p.flops, 'FLOP') + ', measured');
  tile(rate(f.bytes / f.seconds, 'B'), `in and out of steps; memory: ${rate(p.bytes, 'B')} copied`);
  tile(size(f.arena_bytes), `arena; ${size(f.unshared_bytes)} without reuse`);
  for (const e of data.backends) tile(e.runs + ' calls', `run by the backend ${e.name}, without steps`);
}
function shares() {
  $('kinds').replaceChildren();
  $('legend').replaceChildren();
  for (const [kind, name] of Object.entries(kinds)) {
    const mine = f.steps.filter(s => s.kind === kind);
    const share = mine.reduce((n, s) => n + s.seconds, 0) / (total || 1);
    if (!mine.length) continue;
    const bar = add($('kinds'), 'div', {class: kind, style: `flex: ${Math.max(share, 1e-9)} 0 0`});
    bar.dataset.tip = `${name}: ${percent(share)}`;
    const entry = add($('legend'), 'span');
    add(entry, 'i', {class: 'dot ' + kind});
    entry.append(`${name} ${percent(share)} (${mine.length})`);
  }
}

/* Exchanges under way, from start to wait, in as few lanes as keep them apart. */
function exchanges() {
  const busy = [];
  return f.steps.filter(s => s.started >= 0).map(s => {
    const start = f.steps[s.started].start, end = s.start + s.length;
    const free = busy.findIndex(t => t <= start), lane = free < 0 ? busy.length : free;
    busy[lane] = end;
    return {s, start, seconds: end - start, lane: f.threads + lane};
  });
}
/* Vertical lines and their times, from `from` to `to`, in a drawing of w by h. */
function axis(svg, x, from, to, w, h) {
  for (const t of ticks(from, to, w / 130)) {
    add(svg, 'line', {class: 'grid', x1: x(t), x2: x(t), y1: 0, y2: h - 20});
    add(svg, 'text', {class: 'soft', x: x(t), y: h - 6, 'text-anchor': anchor(x(t), w)}, time(t));
  }
}
const label = s => s.name + (s.runs ? ` × ${s.runs}` : '');
function timeline() {
  const box = $('timeline'), left = 74, lane = 34, w = box.clientWidth || 1200;
  const sent = exchanges(), lanes = Math.max(f.threads, ...sent.map(e => e.lane + 1));
  const h = lanes * lane + 26, [from, to] = view;
  const x = t => left + (t - from) / (to - from) * (w - left - 8);
  box.replaceChildren();
  const svg = add(box, 'svg', {width: w, height: h});
  axis(svg, x, from, to, w, h);
  const bar = (s, thread, start, seconds, extra) => {
    const a = Math.max(x(start), left), b = Math.min(x(start + seconds), w - 8);
    if (b <= left || a >= w - 8) return;
    const r = add(svg, 'rect', {class: `box ${s.kind} ${extra}`, x: a, y: thread * lane + 3,
      width: Math.max(b - a, .7), height: lane - 6, rx: 2});
    mark(r, s);
    if (b - a > 30) add(svg, 'text', {class: extra ? '' : 'in', x: a + 4, y: thread * lane + 21,
      'pointer-events': 'none'}, short(label(s), Math.floor((b - a - 8) / 6.7)));
  };
  /* In a loop's bar each step of its body has the share that all of its runs took. */
  const inside = (s, start, seconds, y, h) => {
    const all = s.body.reduce((sum, b) => sum + b.seconds, 0);
    for (const b of all ? s.body : []) {
      const long = seconds * b.seconds / all, a = Math.max(x(start), left), e = Math.min(x(start + long), w - 8);
      if (e > left && a < w - 8) {
        const r = add(svg, 'rect', {class: 'box ' + b.kind, x: a, y, width: Math.max(e - a, .5), height: h});
        add(r, 'title', {}, `${label(b)}: ${time(b.seconds)}`);
        inside(b, start, long, y + h / 2, h / 2);
      }
      start += long;
    }
  };
  for (let t = 0; t < f.threads; ++t)
    add(svg, 'text', {class: 'soft', x: 0, y: t * lane + 21}, 'thread ' + t);
  if (sent.length)
    add(svg, 'text', {class: 'soft', x: 0, y: f.threads * lane + 21}, 'world');
  for (const e of sent) bar(e.s, e.lane, e.start, e.seconds, '');
  for (const s of f.steps.filter(s => !s.once)) {
    bar(s, 0, s.start, s.length, s.spans.length ? 'idle' : '');
    for (const p of s.spans) bar(s, p.thread, p.start, p.seconds, '');
    inside(s, s.start, s.length, lane - 12, 9);
  }
  paint();
}
/* Wheel, dragging and double click show another part of a drawing: now() is that which is shown. */
function zoom(box, now, all, show) {
  const at = e => {
    const r = box.getBoundingClientRect(), [from, to] = now();
    return from + (e.clientX - r.left - 74) / (r.width - 82) * (to - from);
  };
  const set = (a, b) => {
    const n = Math.min(Math.max(b - a, all() / 1e5), all());
    a = Math.min(Math.max(a, 0), all() - n);
    show([a, a + n]);
  };
  box.addEventListener('wheel', e => {
    e.preventDefault();
    const t = at(e), k = e.deltaY > 0 ? 1.25 : .8, [from, to] = now();
    set(t - (t - from) * k, t + (to - t) * k);
  }, {passive: false});
  let held = null;
  box.addEventListener('pointerdown', e => { held = at(e); });
  addEventListener('pointerup', () => { held = null; });
  addEventListener('pointermove', e => {
    if (held !== null && e.buttons) set(now()[0] + held - at(e), now()[1] + held - at(e));
  });
  box.addEventListener('dblclick', () => set(0, all()));
}

/* Scopes of the program by thread, those within others below them. */
let part;
const lastEvent = Math.max(1e-9, ...data.events.slice(0, 1e5).map(e => e.start + e.seconds));
function scopes() {
  const box = $('scopes'), left = 74, row = 22, w = box.clientWidth || 1200, [from, to] = part;
  const depth = [], rows = [];
  data.events.forEach((e, i) => {
    depth[i] = e.parent < 0 ? 0 : depth[e.parent] + 1;
    rows[e.thread] = Math.max(rows[e.thread] || 0, depth[i] + 1);
  });
  const top = rows.map((_, t) => rows.slice(0, t).reduce((n, r) => n + r * row + 8, 0));
  const h = top[top.length - 1] + rows[rows.length - 1] * row + 26;
  const x = t => left + (t - from) / (to - from) * (w - left - 8);
  box.replaceChildren();
  const svg = add(box, 'svg', {width: w, height: h});
  axis(svg, x, from, to, w, h);
  rows.forEach((_, t) => add(svg, 'text', {class: 'soft', x: 0, y: top[t] + 15}, 'thread ' + t));
  data.events.forEach((e, i) => {
    const a = Math.max(x(e.start), left), b = Math.min(x(e.start + e.seconds), w - 8);
    if (b <= left || a >= w - 8) return;
    const name = e.step < 0 ? e.name : `${e.name} ${e.step}`, y = top[e.thread] + depth[i] * row;
    const r = add(svg, 'rect', {class: 'box ' + e.kind, x: a, y, width: Math.max(b - a, .7),
      height: row - 2, rx: 2});
    r.dataset.tip = `${name}\n${time(e.seconds)}, from ${time(e.start)} on`;
    if (b - a > 30) add(svg, 'text', {class: 'in', x: a + 4, y: y + 14, 'pointer-events': 'none'},
      short(name, Math.floor((b - a - 8) / 6.7)));
  });
}

const digit = v => v ? v.toFixed(1) : '';
const columns = [
  ['#', s => s.index, v => v], ['step', s => s.name, null],
  ['time', s => s.seconds, (v, s) => s.once ? 'once' : time(v)],
  ['share', s => s.seconds / total, percent, s => s.seconds / longest()],
  ['GFLOP/s', s => s.seconds && s.flops ? s.flops / s.seconds / 1e9 : 0, digit],
  ['of peak', flopShare, v => v ? percent(v) : '', flopShare],
  ['bytes', bytes, size],
  ['GB/s', s => s.seconds ? bytes(s) / s.seconds / 1e9 : 0, digit],
  ['of memory', byteShare, v => v ? percent(v) : '', byteShare], ['threads', threads, v => v]];
const longest = () => Math.max(...f.steps.map(s => s.seconds)) || 1;
function table() {
  const head = $('steps').tHead, body = $('steps').tBodies[0];
  head.replaceChildren();
  body.replaceChildren();
  const line = add(head, 'tr');
  columns.forEach(([name], i) => {
    const th = add(line, 'th', i === order.column ?
      {'aria-sort': order.down ? 'descending' : 'ascending'} : {}, name);
    th.onclick = () => {
      order = {column: i, down: order.column === i ? !order.down : i > 1};
      table();
    };
  });
  const key = columns[order.column][1], wanted = $('filter').value.toLowerCase();
  const sign = order.down ? -1 : 1;
  const sorted = [...f.steps].sort((a, b) => {
    const x = key(a), y = key(b);
    return sign * (x < y ? -1 : x > y ? 1 : 0) || a.index - b.index;
  });
  for (const s of sorted) {
    if (wanted && ![s.name, s.module, ...s.ops].join(' ').toLowerCase().includes(wanted)) continue;
    const tr = mark(add(body, 'tr'), s);
    delete tr.dataset.tip;
    cells(tr, s, 0);
    bodyRows(body, s, 1);
  }
  paint();
}
function cells(tr, s, depth) {
  columns.forEach(([, value, print, meter], i) => {
    if (i === 1) {
      const td = add(tr, 'td', {style: `padding-left: ${depth * 18 + 4}px`});
      add(td, 'i', {class: 'dot ' + s.kind});
      return add(td, 'span', {class: 'mono'}, label(s));
    }
    const td = add(tr, 'td', {class: 'n'}, print(value(s), s));
    if (meter) {
      td.classList.add('meter');
      td.style.setProperty('--w', (100 * Math.min(meter(s), 1)).toFixed(1) + '%');
    }
  });
}
/* The steps of a loop's body stand below it, with the time of all their runs. */
function bodyRows(body, s, depth) {
  s.body.forEach((b, k) => {
    b.index = `${s.index}.${k}`;
    const tr = add(body, 'tr');
    tr.dataset.body = b.index;
    cells(tr, b, depth);
    bodyRows(body, b, depth + 1);
  });
}

function details() {
  const s = f.steps[picked], list = $('details');
  list.replaceChildren();
  $('picked').textContent = s ? `#${s.index} ${label(s)}` : 'No step';
  if (!s) return;
  const entry = (name, text) => {
    if (text === '') return;
    add(list, 'dt', {}, name);
    return add(list, 'dd', {}, text);
  };
  const value = i => {
    const v = f.values[i];
    return `${v.name} ${v.shape}` + (v.storage === 'arena' ? `, arena + ${v.offset}` : '');
  };
  entry('time', s.once ? 'once, when the memory was made' :
    `${time(s.seconds)}, ${percent(s.seconds / total)}; on ${threads(s)} thread(s)`);
  entry('computes', s.ops.join(' → '));
  entry('module', s.module);
  entry('source', s.source);
  entry('attributes', s.attributes);
  entry('caches', s.cached ? size(s.cached) + ' of packed weights' : '');
  if (s.flops) entry('operations', unit(s.flops, ['FLOP', 'KFLOP', 'MFLOP', 'GFLOP'], 1000) +
    (s.seconds ? `, ${rate(s.flops / s.seconds, 'FLOP')}, ${percent(flopShare(s))} of peak` : ''));
  entry('bytes', `${size(s.bytes_read)} read, ${size(s.bytes_written)} written` +
    (s.seconds ? `, ${rate(bytes(s) / s.seconds, 'B')}` : ''));
  s.reads.forEach((v, i) => entry(i ? '' : 'reads', value(v)));
  s.writes.forEach((v, i) => entry(i ? '' : 'writes', value(v)));
  const steps = (name, all) => {
    if (!all.length) return;
    const dd = add((add(list, 'dt', {}, name), list), 'dd');
    all.forEach(i => {
      const a = add(dd, 'a', {}, '#' + i);
      a.onclick = () => pick(i);
      dd.append(' ' + short(f.steps[i].name, 40) + ' ');
    });
  };
  steps('after', s.after);
  steps('before', f.steps.filter(t => t.after.includes(s.index)).map(t => t.index));
}

function roof() {
  const box = $('roof'), w = box.clientWidth || 340, h = 240, left = 44, bottom = 34;
  const p = data.peaks;
  const all = f.steps.filter(s => s.flops && s.seconds);
  box.replaceChildren();
  $('roofnote').textContent = `Measured on ${p.threads} thread(s) with the vectors that the ` +
    'program was compiled for. Above the slope: from the caches.';
  const intensity = s => s.flops / bytes(s), speed = s => s.flops / s.seconds, lg = Math.log10;
  const xs = [.05, 100, ...all.map(intensity)].map(lg), ys = [p.flops * 2, p.flops / 1e4].map(lg);
  const x0 = Math.floor(Math.min(...xs)), x1 = Math.ceil(Math.max(...xs));
  const y0 = Math.floor(Math.min(ys[1], ...all.map(s => lg(speed(s))))), y1 = ys[0];
  const x = v => left + (lg(v) - x0) / (x1 - x0) * (w - left - 8);
  const y = v => h - bottom - (lg(v) - y0) / (y1 - y0) * (h - bottom - 6);
  const svg = add(box, 'svg', {width: w, height: h});
  for (let i = x0; i <= x1; ++i) {
    add(svg, 'line', {class: 'grid', x1: x(10 ** i), x2: x(10 ** i), y1: 6, y2: h - bottom});
    add(svg, 'text', {class: 'soft', x: x(10 ** i), y: h - bottom + 14,
      'text-anchor': anchor(x(10 ** i), w)}, i < 0 ? (10 ** i).toFixed(-i) : 10 ** i);
  }
  for (let i = y0; i <= y1; ++i) {
    add(svg, 'line', {class: 'grid', x1: left, x2: w - 8, y1: y(10 ** i), y2: y(10 ** i)});
    add(svg, 'text', {class: 'soft', x: left - 5, y: y(10 ** i) + 4, 'text-anchor': 'end'},
      unit(10 ** i, ['', 'K', 'M', 'G', 'T'], 1000).replace(/\.0+/, '').replace(' ', ''));
  }
  add(svg, 'text', {class: 'soft', x: w - 8, y: h - 4, 'text-anchor': 'end'},
    'FLOP per byte → (up: FLOP/s)');
  const knee = p.flops / p.bytes, low = Math.max(10 ** x0, 10 ** y0 / p.bytes);
  add(svg, 'path', {fill: 'none', stroke: 'var(--soft)', 'stroke-width': 1.5, d:
    `M${x(low)} ${y(low * p.bytes)}L${x(knee)} ${y(p.flops)}H${w - 8}`});
  for (const s of all)
    mark(add(svg, 'circle', {class: s.kind, cx: x(intensity(s)), cy: y(speed(s)),
      r: 3 + 9 * Math.sqrt(s.seconds / total)}), s);
}

/* Rows by the longest way from a start; within a row near the steps above. */
function graph() {
  const box = $('graph'), w = 188, h = 26, gapX = 14, gapY = 30, level = [], rows = [], x = [];
  box.replaceChildren();
  f.steps.forEach((s, i) => {
    level[i] = s.after.reduce((n, a) => Math.max(n, level[a] + 1), 0);
    (rows[level[i]] = rows[level[i]] || []).push(i);
  });
  let widest = 0;
  for (const row of rows) {
    const wish = i => {
      const up = f.steps[i].after.map(a => x[a]);
      return up.length ? up.reduce((a, b) => a + b) / up.length : 0;
    };
    let free = 0;
    for (const [at, i] of row.map(i => [wish(i), i]).sort((a, b) => a[0] - b[0] || a[1] - b[1])) {
      x[i] = Math.max(free, at);
      free = x[i] + w + gapX;
    }
    widest = Math.max(widest, free);
  }
  const svg = add(box, 'svg', {width: widest + 4, height: rows.length * (h + gapY)});
  const y = i => level[i] * (h + gapY) + 2;
  f.steps.forEach((s, i) => s.after.forEach(a => {
    const x0 = x[a] + w / 2 + 2, y0 = y(a) + h, x1 = x[i] + w / 2 + 2, y1 = y(i);
    const e = add(svg, 'path', {class: 'edge',
      d: `M${x0} ${y0}C${x0} ${y0 + 22} ${x1} ${y1 - 22} ${x1} ${y1}`});
    e.dataset.ends = ` ${a} ${i} `;
  }));
  f.steps.forEach((s, i) => {
    const g = add(svg, 'g', {class: s.kind});
    mark(add(g, 'rect', {class: 'box', x: x[i] + 2, y: y(i), width: w, height: h, rx: 5}), s);
    add(g, 'rect', {class: 'heat', x: x[i] + 2, y: y(i), height: h, rx: 5,
      width: w * s.seconds / longest()});
    add(g, 'text', {x: x[i] + 9, y: y(i) + 17, 'pointer-events': 'none'},
      short(`#${i} ${s.name}`, 26));
  });
}

function memory() {
  const box = $('memory'), w = box.clientWidth || 1200, h = 340, left = 74, bottom = 26;
  const n = f.steps.length, x = i => left + i / n * (w - left - 8);
  const y = b => h - bottom - b / (f.arena_bytes || 1) * (h - bottom - 6);
  box.replaceChildren();
  const svg = add(box, 'svg', {width: w, height: h});
  const scale = 1024 ** Math.floor(Math.log(f.arena_bytes || 1) / Math.log(1024));
  for (const t of ticks(0, f.arena_bytes / scale, 6).map(t => t * scale)) {
    add(svg, 'line', {class: 'grid', x1: left, x2: w - 8, y1: y(t), y2: y(t)});
    add(svg, 'text', {class: 'soft', x: left - 6, y: y(t) + 4, 'text-anchor': 'end'}, size(t));
  }
  for (const t of ticks(0, n - 1, Math.min(w / 70, n)).filter(Number.isInteger))
    add(svg, 'text', {class: 'soft', x: x(t + .5), y: h - 8, 'text-anchor': 'middle'}, '#' + t);
  for (const v of f.values.filter(v => v.storage === 'arena' && v.bytes)) {
    const maker = f.steps.find(s => s.writes.includes(f.values.indexOf(v)));
    const a = Math.max(v.first, 0), b = Math.min(v.last + 1, n);
    const r = add(svg, 'rect', {class: 'box ' + (maker ? maker.kind : 'move'), x: x(a),
      y: y(v.offset + v.bytes), width: Math.max(x(b) - x(a), 1),
      height: Math.max(y(v.offset) - y(v.offset + v.bytes), 1)});
    r.dataset.tip = `${v.name} ${v.shape}\n${size(v.bytes)} at ${v.offset}\n` +
      (v.first < 0 ? 'always' : `steps ${v.first} to ${Math.min(v.last, n - 1)}`);
    if (maker) r.dataset.step = maker.index;
  }
}

function paint() {
  for (const e of document.querySelectorAll('[data-step]'))
    e.classList.toggle('picked', +e.dataset.step === picked);
  for (const e of document.querySelectorAll('path.edge'))
    e.classList.toggle('picked', e.dataset.ends.includes(` ${picked} `));
}
/* Scrolls a box, and not the page, until what is picked can be seen in it. */
function reveal(box, e) {
  if (!e) return;
  const a = box.getBoundingClientRect(), b = e.getBoundingClientRect();
  if (b.top < a.top || b.bottom > a.bottom) box.scrollTop += b.top - a.top - a.height / 2;
  if (b.left < a.left || b.right > a.right) box.scrollLeft += b.left - a.left - a.width / 2;
}
function pick(i) {
  picked = i;
  details();
  paint();
  reveal($('steps').parentElement, $('steps').querySelector('tr.picked'));
  reveal($('graph'), $('graph').querySelector('.picked[data-step]'));
}
function show(i) {
  f = data.functions[i];
  f.steps.forEach((s, k) => { s.index = k; });
  /* The shown call's own lengths: a step lasts until the next begins. */
  f.steps.forEach((s, k) => { s.length = k + 1 < f.steps.length ? f.steps[k + 1].start - s.start
    : Math.max(f.seconds - s.start, 0); });
  f.end = Math.max(f.seconds, 1e-9);
  total = f.steps.reduce((n, s) => n + s.seconds, 0) || 1e-9;
  view = [0, f.end];
  document.title = 'Profile of ' + f.name;
  $('name').textContent = f.name;
  $('signature').textContent = f.signature;
  const heaviest = f.steps.reduce((a, s) => s.seconds > a.seconds ? s : a, f.steps[0]);
  picked = heaviest ? heaviest.index : -1;
  for (const draw of [tiles, shares, timeline, table, details, roof, graph, memory, paint]) draw();
  root.dataset.steps = f.steps.length;
}

data.functions.forEach((g, i) => add($('which'), 'option', {value: i},
  `${g.name}, ${time(g.seconds)}, ${short(g.signature, 60)}`));
$('which').hidden = data.functions.length < 2;
$('which').onchange = e => show(+e.target.value);
$('filter').oninput = table;
addEventListener('resize', () => {
  if (data.events.length) scopes();
  if (data.functions.length) { timeline(); roof(); memory(); paint(); }
});
document.addEventListener('click', e => {
  const hit = e.target.closest('[data-step]');
  if (hit) pick(+hit.dataset.step);
});
document.addEventListener('pointermove', e => {
  const hit = e.target.closest && e.target.closest('[data-tip]'), tip = $('tip');
  tip.style.display = hit ? 'block' : 'none';
  if (!hit) return;
  tip.textContent = hit.dataset.tip;
  const r = tip.getBoundingClientRect();
  tip.style.left = Math.max(Math.min(e.clientX + 14, innerWidth - r.width - 8), 4) + 'px';
  tip.style.top = (e.clientY + 18 + r.height > innerHeight ? e.clientY - r.height - 10
    : e.clientY + 18) + 'px';
});
zoom($('timeline'), () => view, () => f.end, v => { view = v; timeline(); });
$('scopecard').hidden = !data.events.length;
if (data.events.length) {
  part = [0, lastEvent];
  scopes();
  zoom($('scopes'), () => part, () => lastEvent, v => { part = v; scopes(); });
  root.dataset.events = data.events.length;
}
$('plans').hidden = !data.functions.length;
if (data.functions.length) show(0);
else if (data.events.length) $('name').textContent = 'Scopes';
else $('name').textContent = 'No compiled function and no traced graph ran';
</script></body></html>
)html";

}  // namespace xla::detail
