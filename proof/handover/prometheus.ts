import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { parse } from 'yaml';
import { freePort } from '../../test/support/free-port.ts';

const CONFIG = join(import.meta.dirname, '../../config/prometheus');
const STARTS_WITHIN_MS = 40_000;
/** Interval of the scrapes in config/prometheus/prometheus.yml, seconds. */
export const SCRAPE_S = 15;

/** A series with its samples: epoch seconds and value. */
interface Series {
  readonly labels: Readonly<Record<string, string>>;
  readonly samples: readonly (readonly [at: number, value: number])[];
}

/** A real Prometheus with the shipped configuration and its intervals. */
export interface Prometheus extends AsyncDisposable {
  /** Evaluates a query every `step` seconds between two times, epoch seconds. */
  range(query: string, from: number, to: number, step: number): Promise<readonly Series[]>;
}

/**
 * Starts Prometheus with these rules. It scrapes the targets in the file `targets`.
 * @throws if it does not start
 */
export async function startPrometheus(
  program: string,
  directory: string,
  rules: string,
  targets: string,
): Promise<Prometheus> {
  await mkdir(directory);
  const { scrape_configs: [job] = [], ...shipped } = parse(
    await readFile(join(CONFIG, 'prometheus.yml'), 'utf8'),
  ) as { scrape_configs?: readonly object[] };
  const sd = [{ files: [targets], refresh_interval: '1s' }];
  const config = {
    ...shipped,
    scrape_configs: [{ ...job, static_configs: [], file_sd_configs: sd }],
    alerting: undefined,
  };
  // JSON is valid YAML.
  await writeFile(join(directory, 'prometheus.yml'), JSON.stringify(config));
  await writeFile(join(directory, 'evalwatch.rules.yml'), rules);
  const address = `127.0.0.1:${await freePort()}`;
  const child = spawn(
    program,
    [
      `--config.file=${join(directory, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(directory, 'data')}`,
      `--web.listen-address=${address}`,
    ],
    { stdio: 'ignore' },
  );
  const closed = once(child, 'close');
  const stop = async () => {
    child.kill('SIGKILL');
    await closed;
  };
  const deadline = Date.now() + STARTS_WITHIN_MS;
  while (!(await fetch(`http://${address}/-/ready`).catch(() => undefined))?.ok) {
    if (Date.now() > deadline || child.exitCode !== null) {
      await stop();
      throw new Error('Prometheus does not start');
    }
    await setTimeout(100);
  }
  return {
    range: async (query, from, to, step) => {
      const parameters = new URLSearchParams({
        query,
        start: String(from),
        end: String(to),
        step: String(step),
      });
      const answer = await fetch(`http://${address}/api/v1/query_range?${parameters.toString()}`);
      const { data } = (await answer.json()) as {
        data: { result: readonly { metric: Series['labels']; values: [number, string][] }[] };
      };
      return data.result.map(({ metric, values }) => ({
        labels: metric,
        samples: values.map(([at, value]) => [at, Number(value)] as const),
      }));
    },
    [Symbol.asyncDispose]: stop,
  };
}
