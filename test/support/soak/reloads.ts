import { readFile, writeFile } from 'node:fs/promises';
import { setTimeout } from 'node:timers/promises';
import type { Project } from './configuration.ts';
import type { DaemonWatch } from './watch.ts';

const PAUSE_MS = 50;
/** Project that reloads add and remove, with its series. */
export const STRANGER: Project = { id: 'nobody knows it', datasets: true };

export interface ReloadOptions {
  readonly count: number;
  /** Writes a configuration and returns its file. */
  readonly configure: (
    projects: readonly Project[],
    settings: { readonly schedule?: string; readonly timeout?: string },
  ) => Promise<string>;
  readonly projects: readonly Project[];
}

/**
 * Reloads the daemon with one configuration after the other: another client of the service, another schedule, one more
 * project (unknown to the service), an invalid file, and the first one. It must not be killed meanwhile.
 */
export async function reloadAgainAndAgain(
  watch: DaemonWatch,
  options: ReloadOptions,
): Promise<void> {
  const { count, configure, projects } = options;
  const steps = [
    () => configure(projects, { timeout: '3s' }),
    () => configure(projects, { schedule: '*/1 * * * * *' }),
    () => configure([...projects, STRANGER], {}),
    async () => {
      const file = await configure(projects, {});
      await writeFile(file, (await readFile(file, 'utf8')).replace('schedule', 'scheduel'));
    },
    () => configure(projects, {}),
  ];
  const told = () =>
    watch.lives
      .flatMap(({ run }) => run.lines)
      .filter(({ event }) => event?.startsWith('config.reload')).length;
  const started = () =>
    watch.lives.at(-1)?.run.lines.some(({ event }) => event === 'daemon.started');
  if (count === 0) return;
  while (started() !== true) await setTimeout(PAUSE_MS);
  // The last reload restores the first configuration.
  for (let n = 0; n < count; n += 1) {
    await (n === count - 1 ? configure(projects, {}) : steps[n % steps.length]?.());
    const before = told();
    watch.reload();
    while (told() === before) await setTimeout(PAUSE_MS);
    await setTimeout(PAUSE_MS);
  }
}
