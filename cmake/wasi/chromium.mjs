// SPDX-License-Identifier: Apache-2.0
// A page of headless Chromium, for tests. Chromium takes commands from one pipe and answers on
// another; a zero byte ends each of them.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const browser = ['chromium-headless-shell', 'chromium'].find(
    (name) => spawnSync('which', [name]).status === 0);

/// An empty page. Without Chromium the program ends with status 77, which is that of a skipped test.
export async function openPage() {
  if (!browser) {
    console.log('no Chromium is installed');
    process.exit(77);
  }
  const profile = mkdtempSync(join(tmpdir(), 'xla-page-'));
  const chromium = spawn(
      browser,
      ['--headless', '--no-sandbox', '--disable-gpu', '--remote-debugging-pipe', `--user-data-dir=${profile}`],
      { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] });
  const waiting = new Map(), problems = [];
  let number = 0, sessionId, rest = '';
  chromium.stdio[4].on('data', (bytes) => {
    rest += bytes;
    for (let end; (end = rest.indexOf('\0')) >= 0; rest = rest.slice(end + 1)) {
      const message = JSON.parse(rest.slice(0, end));
      if (message.method === 'Runtime.exceptionThrown')
        problems.push(message.params.exceptionDetails.exception?.description ?? 'an exception');
      waiting.get(message.id)?.(message);
      waiting.delete(message.id);
    }
  });
  async function send(method, params = {}) {
    const id = ++number;
    const answer = new Promise((done) => waiting.set(id, done));
    chromium.stdio[3].write(JSON.stringify({ id, method, params, sessionId }) + '\0');
    const { result, error } = await answer;
    assert(!error, `${method}: ${error?.message}`);
    return result;
  }
  async function ask(expression) {
    const { result, exceptionDetails } =
        await send('Runtime.evaluate', { expression, returnByValue: true, awaitPromise: true });
    assert(!exceptionDetails,
           exceptionDetails?.exception?.description ?? `${exceptionDetails?.text}: ${expression}`);
    return result.value;
  }
  async function close() {
    const ended = new Promise((done) => chromium.on('exit', done));
    chromium.kill();
    await ended;
    rmSync(profile, { recursive: true, force: true });
    chromium.stdio.slice(3).forEach((pipe) => pipe.destroy());
  }

  const { targetId } = await send('Target.createTarget', { url: 'about:blank' });
  ({ sessionId } = await send('Target.attachToTarget', { targetId, flatten: true }));
  await send('Runtime.enable');
  await send('Page.enable');
  return { send, ask, problems, close };
}
