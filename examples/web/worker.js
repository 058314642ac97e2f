// SPDX-License-Identifier: Apache-2.0
// Trains and reads, away from the page's own thread. Messages to it: {train}, {restart}, {points},
// {learn, points}. It answers with what the page shows.
'use strict';

const batchesPerMessage = 2, stepsPerCheck = 10, samples = 24;
const success = 0, badHandle = 8, notSupported = 52;  // of WASI
let lib;  // the functions of trainer.cpp
let training = false, step = 0, lastPoints = null;

const view = () => new DataView(lib.memory.buffer);

// What a program without files needs of WASI.
const wasi = {
  environ_sizes_get(count, size) {
    view().setUint32(count, 0, true);
    view().setUint32(size, 0, true);
    return success;
  },
  environ_get: () => success,
  clock_time_get(_clock, _precision, to) {
    view().setBigUint64(to, BigInt(Math.round(performance.now() * 1e6)), true);
    return success;
  },
  fd_write(_handle, parts, count, to) {
    let text = '', size = 0;
    for (let i = 0; i < count; ++i) {
      const start = view().getUint32(parts + 8 * i, true);
      const length = view().getUint32(parts + 8 * i + 4, true);
      text += new TextDecoder().decode(new Uint8Array(lib.memory.buffer, start, length));
      size += length;
    }
    console.log(text);
    view().setUint32(to, size, true);
    return success;
  },
  proc_exit(status) { throw new Error(`the program ended with ${status}`); },
};

const floats = (at, count) => Array.from(new Float32Array(lib.memory.buffer, at, count));
const picture = () => floats(lib.picture(), 784);

function put(points) {
  const at = lib.drawing(points.length / 2);
  new Float32Array(lib.memory.buffer, at, points.length).set(points);
}

function guess() {
  if (!lastPoints) return;
  put(lastPoints);
  const likely = floats(lib.guess(), 10);
  postMessage({ guess: { likely, picture: picture() } });
}

function showSamples(withPictures) {
  const all = [];
  for (let i = 0; i < samples; ++i) {
    const likely = floats(lib.sample(i), 10);
    const read = likely.indexOf(Math.max(...likely));
    all.push({ read, digit: lib.sample_digit(i), picture: withPictures ? picture() : null });
  }
  postMessage({ samples: all });
}

function check() {
  postMessage({ accuracy: { step, value: lib.accuracy() } });
  showSamples(false);
  guess();
}

// A timer lets messages of the page come between the steps.
function work() {
  if (!training) return;
  const losses = [], start = performance.now();
  for (let i = 0; i < batchesPerMessage; ++i) losses.push({ step: ++step, value: lib.train() });
  postMessage({ losses, ms: (performance.now() - start) / batchesPerMessage });
  if (step % stepsPerCheck === 0) check();
  setTimeout(work, 0);
}

function restart() {
  step = 0;
  lib.restart(Math.floor(Math.random() * 2 ** 31));
  postMessage({ restarted: true });
  check();
}

onmessage = ({ data }) => {
  try {
    if (data.restart) restart();
    if (data.points !== undefined) {
      lastPoints = data.points;
      if (data.learn === undefined) guess();
    }
    if (data.learn !== undefined) {
      put(data.points);
      postMessage({ learned: lib.learn(data.learn) });
    }
    if (data.train !== undefined && data.train !== training) {
      training = data.train;
      work();
    }
  } catch (problem) {
    training = false;
    postMessage({ problem: String(problem) });
  }
};

async function begin() {
  const imports = new Proxy(wasi, {
    get: (known, name) => known[name] ??
        (() => (name.startsWith('fd_prestat') ? badHandle : notSupported)),
  });
  const response = await fetch('trainer.wasm');
  if (!response.ok) throw new Error(`trainer.wasm: ${response.status}`);
  const program =
      await WebAssembly.instantiate(await response.arrayBuffer(), { wasi_snapshot_preview1: imports });
  lib = program.instance.exports;
  lib._initialize();
  lib.restart(1);
  showSamples(true);
  check();
  postMessage({ ready: true });
}
begin().catch((problem) => postMessage({ problem: String(problem) }));
