/**
 * Service with large listings in which some statuses change before each response. Its arguments are the number of projects
 * and of prompts in each; it prints its URL and serves while its stdin is open.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { listingBodies, projectIds } from '../../bench/workload.ts';
import { randomNumbers } from '../random.ts';

/** Statuses as JSON. A move overwrites bytes in place, so shorter ones are padded with spaces. */
const STATUSES = ['"PENDING"', '"RUNNING"', '"COMPLETED"', '"FAILED"'];
const LONGEST = Math.max(...STATUSES.map((status) => status.length));
const STATUS = /"(?:PENDING|RUNNING|COMPLETED|FAILED)"/g;
/** One move in twenty is to FAILED. */
const FAILED_SHARE = 0.05;
const MOVED_SHARE = 0.01;

interface Body {
  readonly bytes: Buffer;
  /** Offset of each status. */
  readonly statuses: readonly number[];
}

// The parent process has ended.
process.stdin.resume().on('end', () => process.exit());
const [projects = 0, prompts = 0] = process.argv.slice(2).map(Number);
const random = randomNumbers(1);
const bodies = new Map(projectIds(projects).map((id, index) => [id, movable(index)] as const));

const server = createServer({ keepAliveTimeout: 60_000 }, ({ url = '' }, response) => {
  const [, project = ''] = /\/v2\/projects\/([^/]+)\/prompts\/$/.exec(url) ?? [];
  const body = bodies.get(project);
  if (body !== undefined) {
    move(body);
    response.writeHead(200, { 'content-type': 'application/json' }).end(body.bytes);
  } else if (url.includes('/prompts/')) {
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end('{"error_info":{"error_id":"E1","error_msg":"the model did not answer"}}');
  } else {
    response.writeHead(404).end();
  }
});
server.listen(0, '127.0.0.1');
await once(server, 'listening');
console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);

function movable(index: number): Body {
  const [first = Buffer.of()] = listingBodies(index, { prompts, versions: 1 });
  const text = first.toString().replaceAll(STATUS, (status) => status.padEnd(LONGEST));
  const statuses = Array.from(text.matchAll(STATUS), (match) => match.index);
  return { bytes: Buffer.from(text, 'latin1'), statuses };
}

function move({ bytes, statuses }: Body): void {
  const usual = STATUSES.length - 1;
  for (let moves = Math.ceil(statuses.length * MOVED_SHARE); moves > 0; moves -= 1) {
    const place = statuses[Math.floor(random() * statuses.length)] ?? 0;
    const status = random() < FAILED_SHARE ? usual : Math.floor(random() * usual);
    bytes.write((STATUSES[status] ?? '').padEnd(LONGEST), place, 'latin1');
  }
}
