import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { ALLOCATION, NODE_FLAGS } from '../../support/node-flags.ts';

const read = (file: string) => readFileSync(new URL(`../../../${file}`, import.meta.url), 'utf8');
const { scripts } = JSON.parse(read('package.json')) as {
  readonly scripts: Readonly<Record<string, string>>;
};

it.each([
  ['npm start', scripts['start'], 'src/main.js run'],
  ['npm run demo', scripts['demo'], 'src/main.js demo'],
  ['npm run evalwatch', scripts['evalwatch'], 'src/main.js'],
])('%s starts Node with the flags that were measured', (_, script, rest) => {
  expect(script).toBe(`exec node ${NODE_FLAGS.join(' ')} ${rest}`);
});

it('the image starts Node with the flags that were measured', () => {
  const entrypoint = JSON.stringify(['node', ...NODE_FLAGS, '/app/dist/main.js']);
  expect(read('Dockerfile')).toContain(`ENTRYPOINT ${entrypoint.replaceAll(',', ', ')}\n`);
});

it('the systemd unit starts Node with the flags that were measured', () => {
  expect(read('config/systemd/evalwatch.service')).toContain(
    `ExecStart=/usr/bin/node ${NODE_FLAGS.join(' ')} /usr/local/lib/node_modules/evalwatch/`,
  );
});

it('the image limits the heap to 50 % of its memory, as the bench does', () => {
  const options = '--max-old-space-size-percentage=50';
  expect(read('Dockerfile')).toContain(`NODE_OPTIONS=${options}`);
  expect(read('bench/daemons.ts')).toContain(`NODE_OPTIONS: '${options}'`);
});

it('the image and the systemd unit set the allocator variables of the bench', () => {
  const variables = Object.entries(ALLOCATION).map(([name, value]) => `${name}=${value}`);
  for (const variable of variables) expect(read('Dockerfile')).toContain(`    ${variable} \\\n`);
  expect(read('config/systemd/evalwatch.service')).toContain(
    `\nEnvironment=${variables.join(' ')}\n`,
  );
});
