import { defineConfig } from 'oxlint';

type OxlintOverride = NonNullable<Parameters<typeof defineConfig>[0]['overrides']>[number];

/** The rooms of src/ and what each may import (docs/design-decisions.md, Floors). */
const rooms: Record<string, { rooms: string[]; libraries: string[] }> = {
  domain: { rooms: [], libraries: [] },
  concurrency: { rooms: [], libraries: [] },
  files: { rooms: [], libraries: [] },
  monitor: { rooms: ['domain'], libraries: [] },
  rows: { rooms: ['domain', 'monitor'], libraries: ['zod'] },
  schedule: { rooms: ['domain', 'monitor'], libraries: ['node-cron'] },
  'evaluation-api': {
    rooms: ['domain', 'concurrency', 'monitor', 'files'],
    libraries: ['undici', 'p-retry'],
  },
  'store/sqlite': { rooms: ['domain', 'monitor'], libraries: ['better-sqlite3'] },
  'store/postgres': {
    rooms: ['domain', 'concurrency', 'monitor', 'coordination', 'files'],
    libraries: ['pg'],
  },
  coordination: { rooms: ['domain', 'monitor'], libraries: [] },
  metrics: { rooms: ['domain', 'monitor'], libraries: ['prom-client'] },
  log: { rooms: ['domain', 'monitor'], libraries: ['pino'] },
  web: {
    rooms: ['domain', 'monitor', 'rows'],
    libraries: ['hono', '@hono/node-server', 'zod', 'bcrypt'],
  },
  config: { rooms: ['domain', 'monitor', 'files'], libraries: ['yaml', 'zod'] },
  simulator: { rooms: [], libraries: [] },
};
const allRooms = [...Object.keys(rooms), 'app', 'cli'];
const allLibraries = [
  ...new Set([...Object.values(rooms).flatMap((room) => room.libraries), 'commander']),
];

function floor(name: string, room: { rooms: string[]; libraries: string[] }): OxlintOverride {
  const closedRooms = allRooms.filter((other) => other !== name && !room.rooms.includes(other));
  const patterns = closedRooms.map((other) => ({
    // A room of store/ is also reached from the one beside it.
    regex: `^(\\.\\./)+${other.replace('store/', '(store/)?')}/`,
    message: `src/${name} may not know src/${other}: see docs/design-decisions.md, Floors.`,
  }));
  patterns.push({
    regex: '/(store/open|main|health-check)\\.(ts|js)$|^\\.\\./open\\.ts$',
    message: `src/${name} may not import what composes it.`,
  });
  if (name === 'store/postgres') {
    patterns.push({
      regex:
        '/coordination/(agreement|heartbeat|lease|releases|share|shared-rate|timeout|worker)\\.ts$',
      message: 'Of the coordination the engine knows only the ports.',
    });
  }
  // Of the monitor an adapter knows the ports, the events and the errors, not the engine.
  if (name !== 'monitor' && room.rooms.includes('monitor')) {
    patterns.push({
      regex:
        '/monitor/(poller|reading|comparison|emit-changes|failure-reporter|listing-memory|poll-health)\\.ts$',
      message: 'Adapters know only the ports, events and errors of the monitor.',
    });
  }
  const libraries = allLibraries.filter((library) => !room.libraries.includes(library));
  patterns.push({
    regex: `^(${libraries.join('|')})($|/)`,
    message: 'Another room owns this library: see docs/design-decisions.md, Floors.',
  });
  return {
    files: [`src/${name}/**/*.ts`],
    rules: { 'no-restricted-imports': ['error', { patterns }] },
  };
}

export default defineConfig({
  plugins: ['typescript', 'import', 'unicorn', 'promise', 'oxc', 'vitest', 'node'],
  categories: { correctness: 'error', suspicious: 'error', perf: 'error' },
  rules: {
    'import/no-cycle': ['error', { ignoreTypes: false }],
    'typescript/no-floating-promises': 'error',
    'typescript/no-misused-promises': 'error',
    'typescript/await-thenable': 'error',
    'typescript/no-explicit-any': 'error',
    'typescript/switch-exhaustiveness-check': 'error',
    'typescript/consistent-type-imports': 'error',
    'no-console': 'error',
    'unicorn/consistent-function-scoping': 'off',
    'oxc/no-map-spread': 'off',
    // What must not overlap awaits in a loop: pages, retries, statements of one transaction.
    'no-await-in-loop': 'off',
    'max-lines-per-function': ['error', { max: 119 }],
    'typescript/no-unsafe-type-assertion': 'error',
    'node/no-process-env': 'error',
    'no-restricted-properties': ['error', { object: 'Date', property: 'now' }],
  },
  overrides: [
    ...Object.entries(rooms).map(([name, room]) => floor(name, room)),
    {
      ...floor('store/rows', { rooms: ['domain', 'monitor'], libraries: [] }),
      files: ['src/store/rows.ts'],
    },
    { files: ['src/app/clock.ts'], rules: { 'no-restricted-properties': 'off' } },
    { files: ['src/config/**/*.ts'], rules: { 'node/no-process-env': 'off' } },
    {
      files: ['test/**/*.ts', 'proof/**/*.ts', 'scripts/**/*.ts', 'bench/**/*.ts', '*.config.ts'],
      rules: {
        'max-lines-per-function': 'off',
        'no-restricted-properties': 'off',
        'node/no-process-env': 'off',
        'no-console': 'off',
        'typescript/no-unsafe-type-assertion': 'off',
      },
    },
  ],
  // assembly/ is AssemblyScript, which only looks like TypeScript.
  ignorePatterns: ['dist', 'coverage', 'node_modules', 'assembly'],
});
