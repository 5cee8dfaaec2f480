import { defineConfig } from 'oxlint';

type OxlintOverride = NonNullable<Parameters<typeof defineConfig>[0]['overrides']>[number];

/** The modules of src/ and what each may import (docs/design-decisions.md, Layers). */
const modules: Record<string, { modules: string[]; libraries: string[] }> = {
  domain: { modules: [], libraries: [] },
  concurrency: { modules: [], libraries: [] },
  files: { modules: [], libraries: [] },
  monitor: { modules: ['domain'], libraries: [] },
  rows: { modules: ['domain', 'monitor'], libraries: ['zod'] },
  schedule: { modules: ['domain', 'monitor'], libraries: ['node-cron'] },
  client: {
    modules: ['domain', 'concurrency', 'monitor', 'files'],
    libraries: ['undici', 'p-retry'],
  },
  'store/sqlite': { modules: ['domain', 'monitor'], libraries: ['better-sqlite3'] },
  'store/postgres': {
    modules: ['domain', 'concurrency', 'monitor', 'coordination', 'files'],
    libraries: ['pg'],
  },
  coordination: { modules: ['domain', 'monitor'], libraries: [] },
  metrics: { modules: ['domain', 'monitor'], libraries: ['prom-client'] },
  log: { modules: ['domain', 'monitor'], libraries: ['pino'] },
  web: {
    modules: ['domain', 'monitor', 'rows'],
    libraries: ['hono', '@hono/node-server', 'zod', 'bcrypt'],
  },
  notify: {
    modules: ['domain', 'monitor', 'rows', 'client', 'config'],
    libraries: ['nodemailer', 'zod'],
  },
  config: { modules: ['domain', 'monitor', 'files', 'schedule'], libraries: ['yaml', 'zod'] },
  simulator: { modules: [], libraries: [] },
};
const allModules = [...Object.keys(modules), 'app', 'cli'];
const allLibraries = [
  ...new Set([...Object.values(modules).flatMap((module) => module.libraries), 'commander']),
];

const THROUGH_CLOCK =
  'Time and timers come from the port Clock: see docs/design-decisions.md, Time is a port.';
const CLOCKS = [
  { object: 'Date', property: 'now', message: THROUGH_CLOCK },
  { object: 'performance', property: 'now', message: THROUGH_CLOCK },
  { object: 'AbortSignal', property: 'timeout', message: THROUGH_CLOCK },
];
interface Pattern {
  readonly regex: string;
  readonly importNames?: string[];
  readonly message: string;
}

const TIMERS = ['setTimeout', 'setInterval'].map((name) => ({ name, message: THROUGH_CLOCK }));
const TIMER_MODULES: Pattern = {
  regex: '^(node:)?timers($|/)',
  importNames: ['setTimeout', 'setInterval', 'scheduler'],
  message: THROUGH_CLOCK,
};
/** Sources that only ever run in real time: what faces people, other programs and threads, and the simulator. */
const REAL_TIME = [
  'src/cli/**',
  'src/health-check.ts',
  'src/log/**',
  'src/metrics/**',
  'src/simulator/**',
  'src/web/**',
];

function layer(name: string, module: { modules: string[]; libraries: string[] }): OxlintOverride {
  const closedModules = allModules.filter(
    (other) => other !== name && !module.modules.includes(other),
  );
  const patterns: Pattern[] = closedModules.map((other) => ({
    // A module of store/ is also reached from the one beside it.
    regex: `^(\\.\\./)+${other.replace('store/', '(store/)?')}/`,
    message: `src/${name} may not import src/${other}: see docs/design-decisions.md, Layers.`,
  }));
  if (!REAL_TIME.includes(`src/${name}/**`)) patterns.push(TIMER_MODULES);
  patterns.push({
    regex: '/(store/open|main|health-check)\\.(ts|js)$|^\\.\\./open\\.ts$',
    message: `src/${name} may not import the modules that compose it.`,
  });
  if (name === 'store/postgres') {
    patterns.push({
      regex: '/coordination/(shared-rate|worker)\\.ts$',
      message: 'store/postgres may import only the ports of coordination.',
    });
  }
  // An adapter may import the ports, the events and the errors of the monitor, not its engine.
  if (name !== 'monitor' && module.modules.includes('monitor')) {
    patterns.push({
      regex: '/monitor/(poller|memory|failure-reporter|expectations)\\.ts$',
      message: 'Adapters may import only the ports, events and errors of the monitor.',
    });
  }
  const libraries = allLibraries.filter((library) => !module.libraries.includes(library));
  patterns.push({
    regex: `^(${libraries.join('|')})($|/)`,
    message: 'Another module owns this library: see docs/design-decisions.md, Layers.',
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
    'no-restricted-properties': ['error', ...CLOCKS],
    'no-restricted-globals': ['error', ...TIMERS],
    'no-restricted-imports': ['error', { patterns: [TIMER_MODULES] }],
  },
  overrides: [
    {
      files: ['src/app/clock.ts', ...REAL_TIME],
      rules: {
        'no-restricted-properties': 'off',
        'no-restricted-globals': 'off',
        'no-restricted-imports': 'off',
      },
    },
    ...Object.entries(modules).map(([name, module]) => layer(name, module)),
    {
      ...layer('store/rows', { modules: ['domain', 'monitor'], libraries: [] }),
      files: ['src/store/rows.ts'],
    },
    { files: ['src/config/**/*.ts'], rules: { 'node/no-process-env': 'off' } },
    // Its parts call each other: each knows the types of the others, and imports none of them.
    {
      files: ['proof/simulation/**/*.ts'],
      rules: { 'import/no-cycle': ['error', { ignoreTypes: true }] },
    },
    {
      files: [
        'test/**/*.ts',
        'proof/**/*.ts',
        'scripts/**/*.ts',
        'bench/**/*.{ts,js}',
        '*.config.ts',
      ],
      rules: {
        'max-lines-per-function': 'off',
        'no-restricted-properties': 'off',
        'no-restricted-globals': 'off',
        'no-restricted-imports': 'off',
        'node/no-process-env': 'off',
        'no-console': 'off',
        'typescript/no-unsafe-type-assertion': 'off',
      },
    },
  ],
  // assembly/ is AssemblyScript, which only looks like TypeScript.
  ignorePatterns: ['dist', 'coverage', 'node_modules', 'assembly'],
});
