import { formatDuration } from './options.ts';

/** Formats a duration in its largest unit, or from an hour on in its two largest: `2 d 4 h`, `35 s`. */
export function duration(ms: number): string {
  if (ms < 1000) return 'less than 1 s';
  return formatDuration(ms, ms < 3_600_000 ? 1 : 2)
    .replaceAll(/(\d+)([a-z]+)/g, '$1 $2 ')
    .replace('m ', 'min ')
    .trimEnd();
}

/** `12,345`. */
export function grouped(count: number): string {
  return count.toLocaleString('en-US');
}

/** `1 prompt`, `12,345 prompts`. */
export function counted(count: number, noun: string): string {
  return `${grouped(count)} ${noun}${count === 1 ? '' : 's'}`;
}
