// SPDX-License-Identifier: Apache-2.0
// The page in headless Chromium: node page_test.mjs <folder of the page> [<folder for pictures>]. Draws, teaches
// and trains as a visitor does. Without Chromium the test is skipped: status 77.
import assert from 'node:assert/strict';
import { createReadStream, existsSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';

import { openPage } from '../../cmake/wasi/chromium.mjs';

const [folder, pictures] = process.argv.slice(2);
const { send, ask, problems, close } = await openPage();

const types = { '.html': 'text/html', '.js': 'text/javascript', '.wasm': 'application/wasm' };
const server = createServer((request, response) => {
  const name = request.url === '/' ? 'index.html' : request.url.slice(1);
  const path = join(folder, normalize(name));
  if (!existsSync(path)) return response.writeHead(404).end();
  response.writeHead(200, { 'content-type': types[extname(path)] ?? 'application/octet-stream' });
  createReadStream(path).pipe(response);
});
await new Promise((listening) => server.listen(0, '127.0.0.1', listening));

async function until(expression, seconds = 120) {
  for (const end = Date.now() + 1000 * seconds; Date.now() < end;) {
    if (await ask(expression)) return;
    await new Promise((later) => setTimeout(later, 100));
  }
  assert.fail(`not within ${seconds} s: ${expression}; the page says: ${await ask('document.body.innerText')}`);
}
const text = (id) => ask(`document.getElementById('${id}').textContent`);
const click = (selector) => ask(`document.querySelector('${selector}').click()`);
async function draw(points) {
  const box = await ask('(() => { pad.scrollIntoView({ block: "center" }); ' +
                        'const b = pad.getBoundingClientRect(); return [b.x, b.y, b.width, b.height]; })()');
  const at = ([x, y]) => ({ x: box[0] + x * box[2], y: box[1] + y * box[3], button: 'left', clickCount: 1 });
  const mouse = (type, point) => send('Input.dispatchMouseEvent', { type, buttons: 1, ...at(point) });
  await mouse('mousePressed', points[0]);
  for (const point of points.slice(1)) await mouse('mouseMoved', point);
  await mouse('mouseReleased', points.at(-1));
}
async function shoot(name, width, height, scheme) {
  await send('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile: width < 600 });
  await send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: scheme }] });
  await new Promise((later) => setTimeout(later, 300));
  assert(await ask('document.documentElement.scrollWidth <= innerWidth'), `${name}: the page is too wide`);
  if (!pictures) return;
  const { data } = await send('Page.captureScreenshot', { captureBeyondViewport: true });
  writeFileSync(join(pictures, `${name}.png`), Buffer.from(data, 'base64'));
}

const seven = [[0.2, 0.2], [0.4, 0.2], [0.6, 0.2], [0.8, 0.2], [0.7, 0.4], [0.6, 0.6], [0.5, 0.85]];
try {
  await send('Emulation.setDeviceMetricsOverride', { width: 1100, height: 1120, deviceScaleFactor: 1, mobile: false });
  await send('Page.navigate', { url: `http://127.0.0.1:${server.address().port}/` });
  await until(`document.getElementById('train')?.disabled === false`);
  assert.equal(await text('state'), 'Ready');
  assert.equal(await ask('document.querySelectorAll("#samples li").length'), 24);

  await draw(seven);
  await until(`document.getElementById('reading').textContent.includes('It reads')`);
  await click('#teach');
  assert.match(await text('taught'), /Choose/);
  await click('input[value="7"]');
  await click('#teach');
  await until(`document.getElementById('taught').textContent.includes('batches: 1.')`);
  assert(await ask(`document.getElementById('teach').disabled`), 'the drawing is gone');

  await click('#train');
  await until('losses.length >= 10');
  const first = await ask('losses.slice(0, 10).reduce((sum, one) => sum + one.value, 0) / 10');
  await draw(seven);
  await until('losses.length >= 120');
  await until(`document.getElementById('reading').textContent.includes('reads a 7')`);
  await shoot('wide', 1100, 1120, 'light');
  await shoot('wide_dark', 1100, 1120, 'dark');
  await shoot('phone', 390, 2300, 'light');
  await shoot('phone_dark', 390, 2300, 'dark');
  await click('#train');
  await until(`document.getElementById('state').textContent === 'Paused'`);
  const last = await ask('losses.slice(-10).reduce((sum, one) => sum + one.value, 0) / 10');
  const accuracy = await ask('accuracies.at(-1).value');
  console.log(`${await text('step')} steps: loss ${first} to ${last}, accuracy ${accuracy}, ${await text('ms')} a step`);
  assert(last < 0.5 * first, 'the loss falls');
  assert(accuracy > 0.85, 'it reads others');

  await click('#restart');
  await until('losses.length === 0');
  assert.equal(await text('state'), 'Ready');
  assert(await ask(`document.getElementById('problem').hidden`));
  assert.deepEqual(problems, []);
} finally {
  await close();
  server.close();
  server.closeAllConnections();
}
