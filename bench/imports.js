// Node with the libraries that the daemon starts with, and nothing else. It waits to be looked at and killed.
const libraries = [
  '@hono/node-server',
  'better-sqlite3',
  'commander',
  'hono',
  'node-cron',
  'p-retry',
  'pino',
  'prom-client',
  'undici',
  'yaml',
  'zod',
];
await Promise.all(libraries.map((library) => import(library)));
process.stdout.write('ready\n');
setInterval(() => {}, 60_000);
