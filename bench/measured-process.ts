/** Measures one contender in this process. The argument is a `Task` as JSON; prints a `Sample`. */
import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout } from 'node:timers/promises';
import type { Contender, Sample, Task } from './measure.ts';
import { memoryOf, resetPeak } from './processes.ts';
import { median } from './report.ts';

const BLOCK_RESOLUTION_MS = 1;

const task = JSON.parse(process.argv[2] ?? '') as Task;
// Loads only the file that the contender is in, because imports cost memory.
const open =
  task.contender.startsWith('evalwatch') || task.contender === 'join'
    ? (await import('./evalwatch.ts')).CONTENDERS[task.contender]
    : (await import('./floors.ts')).CONTENDERS[task.contender];
if (open === undefined) throw new Error(`there is no contender ${task.contender}`);
const delays = monitorEventLoopDelay({ resolution: BLOCK_RESOLUTION_MS });

let contender: Contender | undefined;
let prompts: number | undefined;
let cpuMs = 0;
let wallMs = 0;
const blocksMs: number[] = [];

for (let round = -task.warmUp; round < task.polls; round += 1) {
  if (contender === undefined || task.fresh) {
    await contender?.close();
    const directory = task.fresh ? await mkdtemp(join(task.directory, 'poll-')) : task.directory;
    contender = await open({ ...task, directory });
  }
  await contender.prepare?.();
  if (round < 0) {
    await contender.poll();
    continue;
  }
  if (round === 0) await resetPeak('self');
  delays.enable();
  // Its timer has to be running first.
  await setTimeout(2 * BLOCK_RESOLUTION_MS);
  delays.reset();
  const cpuBefore = process.cpuUsage();
  const wallBefore = performance.now();
  prompts = await contender.poll();
  wallMs += performance.now() - wallBefore;
  const { user, system } = process.cpuUsage(cpuBefore);
  cpuMs += (user + system) / 1000;
  await setTimeout(2 * BLOCK_RESOLUTION_MS);
  blocksMs.push(Math.max(0, delays.max / 1e6 - BLOCK_RESOLUTION_MS));
  delays.disable();
}
const sample: Sample = {
  figures: {
    cpuMs: cpuMs / task.polls,
    wallMs: wallMs / task.polls,
    peakBytes: await memoryOf('self', 'VmHWM'),
    blockMs: median(blocksMs),
    worstBlockMs: Math.max(...blocksMs),
  },
  ...(prompts !== undefined && { prompts }),
};
await contender?.close();
console.log(JSON.stringify(sample));
