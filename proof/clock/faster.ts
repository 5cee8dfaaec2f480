/**
 * Preload module (`node --import`) that makes the time of a program pass FASTER times as fast, and shifts its wall clock by
 * the ms that its parent sends. Imports from node:timers keep real time, because a disk is no faster.
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
