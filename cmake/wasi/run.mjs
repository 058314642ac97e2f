// SPDX-License-Identifier: Apache-2.0
// Runs a program for WASI, which sees the current folder: node run.mjs <program.wasm> [<argument>...]
import { readFileSync } from 'node:fs';
import { WASI } from 'node:wasi';

const [path, ...rest] = process.argv.slice(2);
const wasi = new WASI({
  version: 'preview1', args: [path, ...rest], env: process.env, preopens: { '.': '.' }
});
const { instance } = await WebAssembly.instantiate(readFileSync(path), wasi.getImportObject());
process.exitCode = wasi.start(instance);
