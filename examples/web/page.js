// SPDX-License-Identifier: Apache-2.0
// The page: takes strokes, and shows what worker.js reports.
'use strict';

const stepsAtATime = 300;  // then training waits for a click
const element = (id) => document.getElementById(id);
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name);
const percent = (part) => `${Math.round(100 * part)} %`;
const worker = new Worker('worker.js');

const strokes = [];
let training = false, stopAt = stepsAtATime;
let losses = [], accuracies = [];

// Strokes.

const pad = element('pad');
const brush = pad.getContext('2d');

function paint() {
  brush.clearRect(0, 0, pad.width, pad.height);
  Object.assign(brush,
                { lineCap: 'round', lineJoin: 'round', lineWidth: 40, strokeStyle: color('--ink') });
  for (const stroke of strokes) {
    brush.beginPath();
    stroke.forEach(([x, y]) => brush.lineTo(x * pad.width, y * pad.height));
    if (stroke.length === 1) brush.lineTo(stroke[0][0] * pad.width, stroke[0][1] * pad.height);
    brush.stroke();
  }
  for (const button of ['teach', 'clear']) element(button).disabled = strokes.length === 0;
}

// x and y of each point, from 0 to 1; a negative x begins a stroke.
const points = () =>
    Float32Array.from(strokes.flatMap((stroke) => [-1, 0, ...stroke.flat()]));

function add(event) {
  const box = pad.getBoundingClientRect();
  const inside = (part) => Math.min(1, Math.max(0, part));
  strokes.at(-1).push([inside((event.clientX - box.left) / box.width),
                       inside((event.clientY - box.top) / box.height)]);
  paint();
}

pad.addEventListener('pointerdown', (event) => {
  pad.setPointerCapture(event.pointerId);
  strokes.push([]);
  add(event);
});
pad.addEventListener('pointermove', (event) => {
  if (!pad.hasPointerCapture(event.pointerId)) return;
  for (const one of event.getCoalescedEvents?.() ?? []) add(one);
  add(event);
});
for (const end of ['pointerup', 'pointercancel'])
  pad.addEventListener(end, () => strokes.length && worker.postMessage({ points: points() }));

function clear() {
  strokes.length = 0;
  paint();
}
element('clear').addEventListener('click', clear);

for (let digit = 0; digit < 10; ++digit) {
  const label = document.createElement('label');
  label.innerHTML = `<input type="radio" name="digit" value="${digit}"><span>${digit}</span>`;
  element('labels').append(label);
}
element('teach').addEventListener('click', () => {
  const chosen = document.querySelector('input[name=digit]:checked');
  if (!chosen) {
    element('taught').textContent = 'Choose above which digit it is.';
    return;
  }
  worker.postMessage({ learn: Number(chosen.value), points: points() });
  clear();
});

// Training.

function setTraining(on) {
  training = on;
  worker.postMessage({ train: on });
  element('train').textContent = on ? 'Pause' : losses.length ? 'Continue' : 'Start training';
  element('state').textContent = on ? 'Training…' : losses.length ? 'Paused' : 'Ready';
}
element('train').addEventListener('click', () => {
  if (!training) stopAt = losses.length + stepsAtATime;
  setTraining(!training);
});
element('restart').addEventListener('click', () => {
  setTraining(false);
  worker.postMessage({ restart: true });
});

const chart = element('chart');
function drawChart() {
  const scale = window.devicePixelRatio || 1, width = chart.clientWidth, height = chart.clientHeight;
  chart.width = width * scale;
  chart.height = height * scale;
  const pen = chart.getContext('2d');
  pen.scale(scale, scale);
  const left = 30, right = width - 44, top = 8, bottom = height - 22;
  const last = Math.max(100, losses.length), highest = 2.5;
  const x = (step) => left + (right - left) * step / last;
  const y = (part) => bottom - (bottom - top) * part;
  pen.font = '12px system-ui, sans-serif';
  pen.fillStyle = color('--soft');
  pen.strokeStyle = color('--line');
  pen.textBaseline = 'middle';
  for (let i = 0; i <= 5; ++i) {
    const at = y(i / 5);
    pen.beginPath();
    pen.moveTo(left, at);
    pen.lineTo(right, at);
    pen.stroke();
    pen.textAlign = 'right';
    pen.fillText((highest * i / 5).toFixed(1), left - 6, at);
    pen.textAlign = 'left';
    pen.fillText(percent(i / 5), right + 6, at);
  }
  pen.textAlign = 'center';
  const each = last <= 200 ? 50 : last <= 1000 ? 200 : 1000;
  for (let step = 0; step <= last; step += each) pen.fillText(step, x(step), height - 8);
  const line = (values, toPart, name, wide) => {
    pen.beginPath();
    for (const { step, value } of values) pen.lineTo(x(step), y(Math.min(1, toPart(value))));
    Object.assign(pen, { strokeStyle: color(name), lineWidth: wide, lineJoin: 'round' });
    pen.stroke();
  };
  line(losses, (loss) => loss / highest, '--accent', 1.5);
  line(accuracies, (accuracy) => accuracy, '--second', 2.5);
}
new ResizeObserver(drawChart).observe(chart);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
  paint();
  drawChart();
  showPictures();
});

// Readings.

const bars = Array.from({ length: 10 }, (_, digit) => {
  const bar = document.createElement('li');
  bar.innerHTML = `<b></b><i></i><span>${digit}</span>`;
  element('bars').append(bar);
  return bar;
});

const shown = new Map();  // canvases and the 784 pixels in each
function show(canvas, pixels) {
  shown.set(canvas, pixels);
  const channels = (name) => color(name).trim().slice(1).replace(/^(.)(.)(.)$/, '$1$1$2$2$3$3')
      .match(/../g).map((two) => parseInt(two, 16));
  const paper = channels('--paper'), ink = channels('--ink');
  const image = new ImageData(28, 28);
  pixels.forEach((pixel, i) => {
    for (let c = 0; c < 3; ++c) image.data[4 * i + c] = paper[c] + pixel * (ink[c] - paper[c]);
    image.data[4 * i + 3] = 255;
  });
  canvas.getContext('2d').putImageData(image, 0, 0);
}
function showPictures() {
  for (const [canvas, pixels] of shown) show(canvas, pixels);
}

function showGuess({ likely, picture }) {
  show(element('seen'), picture);
  const best = likely.indexOf(Math.max(...likely));
  bars.forEach((bar, digit) => {
    bar.children[0].textContent = percent(likely[digit]);
    bar.children[1].style.height = `${68 * likely[digit]}%`;
    bar.classList.toggle('top', digit === best);
  });
  element('reading').textContent = `It reads a ${best}, with ${percent(likely[best])} certainty.`;
}

function showSamples(all) {
  const list = element('samples');
  all.forEach(({ read, digit, picture }, i) => {
    if (picture) {
      const item = document.createElement('li');
      item.innerHTML = '<canvas width="28" height="28" aria-hidden="true"></canvas><span></span>';
      list.append(item);
      show(item.firstChild, picture);
    }
    const text = list.children[i].lastChild;
    text.textContent = read === digit ? `${digit} ✓` : `${digit}, reads ${read}`;
    text.className = read === digit ? 'good' : 'bad';
  });
}

worker.onerror = (event) => worker.onmessage({ data: { problem: event.message } });
worker.onmessage = ({ data }) => {
  if (data.ready) {
    for (const id of ['train', 'restart']) element(id).disabled = false;
    setTraining(false);
  }
  if (data.restarted) {
    losses = [];
    accuracies = [];
    for (const [id, text] of [['step', '0'], ['loss', '–'], ['ms', '–']])
      element(id).textContent = text;
    setTraining(false);
    drawChart();
  }
  if (data.losses) {
    losses.push(...data.losses);
    const recent = losses.slice(-10);
    element('step').textContent = losses.length;
    element('loss').textContent =
        (recent.reduce((sum, { value }) => sum + value, 0) / recent.length).toFixed(3);
    element('ms').textContent = `${data.ms.toFixed(0)} ms`;
    drawChart();
    if (training && losses.length >= stopAt) setTraining(false);
  }
  if (data.accuracy) {
    accuracies.push(data.accuracy);
    element('accuracy').textContent = percent(data.accuracy.value);
    drawChart();
  }
  if (data.guess) showGuess(data.guess);
  if (data.samples) showSamples(data.samples);
  if (data.learned)
    element('taught').textContent = `Digits of yours in its batches: ${data.learned}.`;
  if (data.problem) {
    element('problem').hidden = false;
    element('problem').textContent = `It does not run here: ${data.problem}`;
    element('state').textContent = 'Stopped';
  }
};

paint();
drawChart();
