/**
 * Loaded before a program (`node --import`): lets its time pass FASTER times as fast, and sets its wall clock by as many ms
 * as its parent sends it. A disk is no faster: what is imported from node:timers keeps its time.
 */
const speed = Number(process.env['FASTER']);
const start = Date.now();
const RealDate = Date;
const { setTimeout: after, setInterval: every } = globalThis;
const monotonic = performance.now.bind(performance);
const began = monotonic();
let offset = 0;

const now = () => Math.floor(start + (monotonic() - began) * speed + offset);

class FasterDate extends RealDate {
  constructor(...parameters: []) {
    super(...((parameters.length === 0 ? [now()] : parameters) as unknown as []));
  }
  static override now(): number {
    return now();
  }
}

Object.assign(globalThis, {
  Date: FasterDate,
  setTimeout: (work: () => void, ms = 0, ...rest: []) => after(work, ms / speed, ...rest),
  setInterval: (work: () => void, ms = 0, ...rest: []) => every(work, ms / speed, ...rest),
});
performance.now = () => monotonic() * speed;
process.on('message', (ms: number) => {
  offset += ms;
  process.send?.(now());
});
process.channel?.unref();
