/**
 * Evaluation Service in a process of its own that counts polls. It prints its address, and answers `/reset` and `/counts`
 * ({@link Counts}). Its arguments are the interval between two polls of a project, ms, and the number of prompts in each
 * project.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { errorOf, promptDetail } from '../../test/support/service.ts';
import { listingBodies } from '../workload.ts';

/** Requests since the last `/reset`. */
export interface Counts {
  /** Requests for listings. */
  readonly polls: number;
  /** Polls that came less than half an interval after the previous one of the same project since the reset. */
  readonly doubled: number;
}

/** Every fifth poll finds one percent of the prompts changed. */
const CHANGES_ONE_IN = 5;
const VERSIONS = 8;
/** Path requested once after each move to FAILED. */
const PROMPT = /^\/v2\/prompts\/([^/]+)\/$/;

// The cost of the service is not measured, so all projects have the same listings.
const [intervalMs = 0, prompts = 0] = process.argv.slice(2).map(Number);
const bodies = [...listingBodies(0, { prompts, versions: VERSIONS })];
const versions = new Map<string, number>();
const lastAt = new Map<string, number>();
let counts = { polls: 0, doubled: 0 };

const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
  const url = new URL(request.url ?? '', 'http://localhost');
  const [, prompt] = PROMPT.exec(url.pathname) ?? [];
  if (prompt !== undefined) {
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(promptDetail(errorOf(prompt))));
    return;
  }
  if (url.pathname === '/counts') {
    response.end(JSON.stringify(counts satisfies Counts));
    return;
  }
  if (url.pathname === '/reset') {
    counts = { polls: 0, doubled: 0 };
    // The first poll of a project, when a worker claims it, may come shortly before the first tick.
    lastAt.clear();
    response.end();
    return;
  }
  const project = url.pathname;
  // First values differ, so each time another fifth of the projects changes.
  const asked = versions.get(project) ?? versions.size % CHANGES_ONE_IN;
  versions.set(project, asked + 1);
  const at = performance.now();
  counts.polls += 1;
  if (at - (lastAt.get(project) ?? -Infinity) < intervalMs / 2) counts.doubled += 1;
  lastAt.set(project, at);
  const version = Math.floor(asked / CHANGES_ONE_IN) % bodies.length;
  const etag = `"${version}"`;
  if (request.headers['if-none-match'] === etag) {
    response.writeHead(304, { etag }).end();
    return;
  }
  const body = bodies[version];
  response.writeHead(200, {
    'content-type': 'application/json',
    'content-length': body?.length,
    etag,
  });
  response.end(body);
});
server.listen(0, '127.0.0.1', 2000);
await once(server, 'listening');
console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
