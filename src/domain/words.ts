const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1000],
] as const;

/** Formats a duration in its two largest units: `2 d 4 h`, `35 s`. */
export function duration(ms: number): string {
  const parts: string[] = [];
  let left = Math.max(0, ms);
  for (const [unit, length] of UNITS) {
    const count = Math.floor(left / length);
    left -= count * length;
    if (count > 0) parts.push(`${count} ${unit}`);
    else if (parts.length > 0) break;
    if (parts.length === 2 || (parts.length === 1 && unit === 'min')) break;
  }
  return parts.join(' ') || 'less than 1 s';
}

/** `12,345`. */
export function grouped(count: number): string {
  return count.toLocaleString('en-US');
}

/** `1 prompt`, `12,345 prompts`. */
export function counted(count: number, noun: string): string {
  return `${grouped(count)} ${noun}${count === 1 ? '' : 's'}`;
}
