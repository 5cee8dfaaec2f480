import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

const TICKS_A_SECOND = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));

/** Returns the CPU time of a PostgreSQL server and all its processes, also ended ones, ms. */
export function cpuMsOf(postmaster: number): number {
  const processes = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => readStat(pid) ?? []);
  const ticks = processes.reduce((sum, { pid, parent, own, ofEnded }) => {
    if (pid === postmaster) return sum + own + ofEnded;
    return parent === postmaster ? sum + own : sum;
  }, 0);
  return (ticks / TICKS_A_SECOND) * 1000;
}

function readStat(pid: string) {
  try {
    // The second field is a name in parentheses, which may contain any character.
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /, '')
      .split(' ');
    const [parent, own, system, ended, endedSystem] = [1, 11, 12, 13, 14].map((at) =>
      Number(fields[at]),
    );
    return {
      pid: Number(pid),
      parent: parent ?? 0,
      own: (own ?? 0) + (system ?? 0),
      ofEnded: (ended ?? 0) + (endedSystem ?? 0),
    };
  } catch {
    return undefined;
  }
}
