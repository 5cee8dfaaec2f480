/** Measures one contender in this process. The argument is a `MeasuredTask` as JSON; prints a `Sample`. */
import { mkdtemp, writeFile } from 'node:fs/promises';
import type { Profiler } from 'node:inspector';
import { Session } from 'node:inspector/promises';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout } from 'node:timers/promises';
import type { Contender, Outcome } from './contenders/contender.ts';
import { NODE_CONTENDERS, type NodeContender } from './contenders/contenders.ts';
import type { MeasuredTask, Sample } from './measure.ts';
import { memoryOf } from './node-process.ts';
import { median } from './statistics.ts';

const PROFILE_EVERY_US = 200;
const BLOCK_RESOLUTION_MS = 1;

const task = JSON.parse(process.argv[2] ?? '') as MeasuredTask & { contender: NodeContender };
const open = await NODE_CONTENDERS[task.contender]();
const delays = monitorEventLoopDelay({ resolution: BLOCK_RESOLUTION_MS });

let contender: Contender | undefined;
let outcome: Outcome = {};
let cpuMs = 0;
let wallMs = 0;

/** Returns the contender of the next round, prepared. */
async function nextContender(): Promise<Contender> {
  if (contender === undefined || task.fresh) {
    await contender?.close();
    const directory = task.fresh ? await mkdtemp(join(task.directory, 'poll-')) : task.directory;
    contender = await open({ ...task, directory });
  }
  await contender.prepare?.();
  return contender;
}

async function measurePoll(polling: Contender): Promise<void> {
  const cpuBefore = process.cpuUsage();
  const wallBefore = performance.now();
  outcome = await polling.poll();
  wallMs += performance.now() - wallBefore;
  const { user, system } = process.cpuUsage(cpuBefore);
  cpuMs += (user + system) / 1000;
}

async function profiled(work: () => Promise<void>): Promise<Profiler.Profile> {
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.setSamplingInterval', { interval: PROFILE_EVERY_US });
  await session.post('Profiler.start');
  await work();
  const { profile } = await session.post('Profiler.stop');
  session.disconnect();
  return profile;
}

for (let round = 0; round < task.warmUp; round += 1) {
  const polling = await nextContender();
  await polling.poll();
}
// Resets the peak before the measured rounds.
await writeFile('/proc/self/clear_refs', '5');
const profiles: Profiler.Profile[] = [];
const blocksMs: number[] = [];
for (let round = 0; round < task.polls; round += 1) {
  const polling = await nextContender();
  delays.enable();
  // Its timer has to be running first.
  await setTimeout(2 * BLOCK_RESOLUTION_MS);
  delays.reset();
  if (task.profile === undefined) await measurePoll(polling);
  else profiles.push(await profiled(() => measurePoll(polling)));
  await setTimeout(2 * BLOCK_RESOLUTION_MS);
  blocksMs.push(Math.max(0, delays.max / 1e6 - BLOCK_RESOLUTION_MS));
  delays.disable();
}
if (task.profile !== undefined) await writeFile(task.profile, JSON.stringify(profiles));
const sample: Sample = {
  cpuMs: cpuMs / task.polls,
  wallMs: wallMs / task.polls,
  peakBytes: await memoryOf('self', 'VmHWM'),
  blockMs: median(blocksMs),
  worstBlockMs: Math.max(...blocksMs),
  outcome,
};
await contender?.close();
console.log(JSON.stringify(sample));
