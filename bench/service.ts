/**
 * Serves the workload of its argument (JSON), prints its address, and exits when its stdin is closed. It only sends prepared
 * responses. The path before `/v2/` names a run; each run begins with the first version.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { listingBodies, ONE_LISTING, projectIds, type Workload } from './workload.ts';

/** Requests for listings since the last `/reset`, which `/counts` returns. */
export interface Counts {
  readonly polls: number;
  /** Polls that came less than half an interval after the previous one of the same project. */
  readonly doubled: number;
}

const LISTING = /\/v2\/projects\/([^/]+)\/prompts\/$/;
const DETAIL = '{"error_info":{"error_id":"E1","error_msg":"the model did not answer"}}';

// The parent process has ended.
process.stdin.resume().on('end', () => process.exit());
const workload: Workload = { ...ONE_LISTING, ...(JSON.parse(process.argv[2] ?? '') as object) };
const { encoding, sendsEtag, pollsEach, everyMs, isShared } = workload;
const ids = projectIds(workload.projects);
const shared = isShared ? prepare(0) : undefined;
const listings = new Map(ids.map((id, index) => [id, shared ?? prepare(index)]));
const served = new Map<string, number>();
const lastAt = new Map<string, number>();
let counts: Counts = { polls: 0, doubled: 0 };

const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
  const { url = '' } = request;
  const json = { 'content-type': 'application/json' };
  const bodies = listings.get(LISTING.exec(url)?.[1] ?? '');
  if (bodies !== undefined) {
    count(url);
    // With several polls of each version, each time another part of the projects changes.
    const before = served.get(url) ?? served.size % pollsEach;
    served.set(url, before + 1);
    const version = Math.floor(before / pollsEach);
    const index = isShared ? version % bodies.length : Math.min(version, bodies.length - 1);
    const etag = `"${index}"`;
    if (sendsEtag && request.headers['if-none-match'] === etag) {
      response.writeHead(304, { etag }).end();
      return;
    }
    const body = bodies[index];
    response.writeHead(200, {
      ...json,
      'content-length': body?.length,
      ...(encoding === 'gzip' && { 'content-encoding': 'gzip' }),
      ...(sendsEtag && { etag }),
    });
    response.end(body);
  } else if (url.includes('/v2/prompts/')) {
    response.writeHead(200, json).end(DETAIL);
  } else if (url === '/counts') {
    response.writeHead(200, json).end(JSON.stringify(counts));
  } else if (url === '/reset') {
    counts = { polls: 0, doubled: 0 };
    // The first poll of a project, when a worker claims it, may come shortly before the first tick.
    lastAt.clear();
    response.end();
  } else {
    response.writeHead(404).end();
  }
});
server.listen(0, '127.0.0.1', 2000);
await once(server, 'listening');
console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);

function prepare(project: number): readonly Buffer[] {
  const bodies = listingBodies(project, workload);
  return Array.from(bodies, (body) => (encoding === 'gzip' ? gzipSync(body) : body));
}

function count(url: string): void {
  const at = performance.now();
  const isDoubled = at - (lastAt.get(url) ?? -Infinity) < everyMs / 2;
  counts = { polls: counts.polls + 1, doubled: counts.doubled + Number(isDoubled) };
  lastAt.set(url, at);
}
