// SPDX-License-Identifier: Apache-2.0
// The page's program under node: node trainer_test.mjs <folder of the page>. It learns, also a digit that is
// drawn, and the page is as small as it promises.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { WASI } from 'node:wasi';
import { gzipSync } from 'node:zlib';

const folder = process.argv[2], mostBytes = 450_000;
const files = readdirSync(folder);
const size = files.reduce((sum, file) => sum + gzipSync(readFileSync(`${folder}/${file}`)).length, 0);
console.log(`${files.join(', ')}: ${size} bytes compressed`);
assert(files.includes('index.html') && files.includes('trainer.wasm'));
assert(size <= mostBytes, `the page has ${size} bytes compressed, more than ${mostBytes}`);

const wasi = new WASI({ version: 'preview1' });
const { instance } =
    await WebAssembly.instantiate(readFileSync(`${folder}/trainer.wasm`), wasi.getImportObject());
const lib = instance.exports;
wasi.initialize(instance);
const train = (steps) => {
  let sum = 0;
  for (let i = 0; i < steps; ++i) sum += lib.train();
  return sum / steps;
};

lib.restart(1);
const before = lib.accuracy(), first = train(5);
train(90);
const last = train(5), after = lib.accuracy();
console.log(`loss ${first} to ${last}, accuracy ${before} to ${after}`);
assert(Math.abs(first - Math.log(10)) < 0.2, 'it begins as likely as by chance');
assert(last < 0.5 && before < 0.4 && after > 0.85, 'it learns');
assert.equal(lib.sample_digit(3), lib.sample_digit(3));

// A cross is a 3 from now on.
const cross = new Float32Array([-1, 0, 0.2, 0.2, 0.5, 0.5, 0.8, 0.8, -1, 0, 0.8, 0.2, 0.2, 0.8]);
const put = () => new Float32Array(lib.memory.buffer, lib.drawing(cross.length / 2), cross.length).set(cross);
const likely = () => {
  put();
  return Array.from(new Float32Array(lib.memory.buffer, lib.guess(), 10));
};
const unknown = likely();
assert(Math.abs(unknown.reduce((a, b) => a + b) - 1) < 1e-4, 'it answers with shares of one');
const ink = new Float32Array(lib.memory.buffer, lib.picture(), 784).reduce((a, b) => a + b);
assert(ink > 50 && ink < 250, 'it sees what was drawn');
put();
assert.equal(lib.learn(3), 1);
put();
assert.equal(lib.learn(3), 2);
train(60);
const known = likely();
console.log(`a cross is a 3: ${unknown[3]} to ${known[3]}`);
assert(unknown[3] < 0.5 && known[3] > 0.8, 'it learns what was drawn');
lib.restart(1);
assert(lib.accuracy() === before, 'it forgets');
