// SPDX-License-Identifier: Apache-2.0
// Runs a program for WASI in headless Chromium, with an empty folder in memory:
// node browse.mjs <program.wasm> [<argument>...]
import { readFileSync } from 'node:fs';
import { openPage } from './chromium.mjs';

/// Runs in the page. What the program prints, and its status.
async function run(program, args) {
  const success = 0, badHandle = 8, exists = 20, invalid = 28, missing = 44, notSupported = 52;
  const character = 2, directory = 3, regular = 4;  // types of files
  const folder = 3;                                 // the handle of the current folder
  const files = new Map(), handles = new Map();     // handles: {file: {bytes}, at, appends}
  let memory, output = '';

  const view = () => new DataView(memory.buffer);
  const bytesAt = (at, size) => new Uint8Array(memory.buffer, at, size);
  const textAt = (at, size) => new TextDecoder().decode(bytesAt(at, size)).replace(/^(\.\/)+/, '');
  const put32 = (at, value) => { view().setUint32(at, value, true); return success; };
  const put64 = (at, value) => { view().setBigUint64(at, BigInt(value), true); return success; };
  function* spans(at, count) {
    for (let i = 0; i < count; ++i)
      yield bytesAt(view().getUint32(at + 8 * i, true), view().getUint32(at + 8 * i + 4, true));
  }
  const write = (handle, bytes) => {
    const { file } = handle, at = handle.appends ? file.bytes.length : handle.at;
    if (file.bytes.length < at + bytes.length) {
      const larger = new Uint8Array(at + bytes.length);
      larger.set(file.bytes);
      file.bytes = larger;
    }
    file.bytes.set(bytes, at);
    handle.at = at + bytes.length;
  };
  const strings = args.map((text) => new TextEncoder().encode(text + '\0'));
  const typeOf = (handle) => handle < folder ? character : handle === folder ? directory : regular;
  const known = (handle) => handle <= folder || handles.has(handle);

  const wasi = {
    args_sizes_get(count, size) {
      put32(count, strings.length);
      return put32(size, strings.reduce((sum, one) => sum + one.length, 0));
    },
    args_get(pointers, at) {
      strings.forEach((text, i) => {
        put32(pointers + 4 * i, at);
        bytesAt(at, text.length).set(text);
        at += text.length;
      });
      return success;
    },
    environ_sizes_get: (count, size) => put32(count, 0) || put32(size, 0),
    environ_get: () => success,
    clock_time_get: (_clock, _precision, to) => put64(to, Math.round(performance.now() * 1e6)),
    proc_exit(status) { throw { status }; },

    fd_prestat_get(handle, to) {
      if (handle !== folder) return badHandle;
      return put32(to, 0) || put32(to + 4, 1);  // a folder, and the length of its name
    },
    fd_prestat_dir_name(handle, at) {
      bytesAt(at, 1)[0] = '.'.charCodeAt(0);
      return success;
    },
    fd_fdstat_get(handle, to) {
      if (!known(handle)) return badHandle;
      bytesAt(to, 24).fill(0);
      view().setUint8(to, typeOf(handle));
      return put64(to + 8, 2n ** 64n - 1n) || put64(to + 16, 2n ** 64n - 1n);  // all rights
    },
    fd_fdstat_set_flags: () => success,
    fd_write(handle, parts, count, to) {
      const file = handles.get(handle);
      if (!file && (handle < 1 || handle > 2)) return badHandle;
      let size = 0;
      for (const bytes of spans(parts, count)) {
        if (file) write(file, bytes);
        else output += new TextDecoder().decode(bytes);
        size += bytes.length;
      }
      return put32(to, size);
    },
    fd_read(handle, parts, count, to) {
      const from = handles.get(handle);
      if (!from) return badHandle;
      let size = 0;
      for (const bytes of spans(parts, count)) {
        const some = from.file.bytes.subarray(from.at, from.at + bytes.length);
        bytes.set(some);
        from.at += some.length;
        size += some.length;
      }
      return put32(to, size);
    },
    fd_seek(handle, offset, whence, to) {
      const file = handles.get(handle);
      if (!file) return badHandle;
      const from = [0, file.at, file.file.bytes.length][whence];
      if (from + Number(offset) < 0) return invalid;
      file.at = from + Number(offset);
      return put64(to, file.at);
    },
    fd_close: (handle) => handles.delete(handle) ? success : badHandle,

    path_open(_folder, _follow, path, length, creates, _rights, _inherited, flags, to) {
      const name = textAt(path, length), old = files.get(name);
      const [create, exclusive, truncate] = [1, 4, 8].map((bit) => (creates & bit) !== 0);
      if (old && create && exclusive) return exists;
      if (!old && !create) return missing;
      const file = old ?? { bytes: new Uint8Array() };
      if (truncate) file.bytes = new Uint8Array();
      files.set(name, file);
      let handle = folder + 1;
      while (handles.has(handle)) ++handle;
      handles.set(handle, { file, at: 0, appends: (flags & 1) !== 0 });
      return put32(to, handle);
    },
    path_filestat_get(_folder, _follow, path, length, to) {
      const name = textAt(path, length), file = files.get(name);
      if (!file && name !== '.') return missing;
      bytesAt(to, 64).fill(0);
      view().setUint8(to + 16, file ? regular : directory);
      return put64(to + 24, 1) || put64(to + 32, file ? file.bytes.length : 0);
    },
    path_readlink: () => invalid,  // there are no links
    path_rename(_folder, path, length, _to, newPath, newLength) {
      const name = textAt(path, length), file = files.get(name);
      if (!file) return missing;
      files.delete(name);
      files.set(textAt(newPath, newLength), file);
      return success;
    },
    path_unlink_file: (_folder, path, length) => files.delete(textAt(path, length)) ? success : missing,
  };
  const imports = new Proxy(wasi, { get: (all, name) => all[name] ?? (() => notSupported) });
  const bytes = Uint8Array.from(atob(program), (one) => one.charCodeAt(0));
  const { instance } = await WebAssembly.instantiate(bytes, { wasi_snapshot_preview1: imports });
  memory = instance.exports.memory;
  try {
    instance.exports._start();
    return { output, status: 0 };
  } catch (end) {
    if (end.status === undefined) throw end;
    return { output, status: end.status };
  }
}

const [path, ...rest] = process.argv.slice(2);
const page = await openPage();
try {
  const program = readFileSync(path).toString('base64');
  const { output, status } = await page.ask(`(${run})('${program}', ${JSON.stringify([path, ...rest])})`);
  process.stdout.write(output);
  process.exitCode = status;
} finally {
  await page.close();
}
