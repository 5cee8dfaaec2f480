import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { vi } from 'vitest';
import { PATIENCE, startServer } from './server.ts';

export type Labels = Readonly<Record<string, string>>;

interface ShownAlert {
  readonly labels: Labels;
  readonly annotations: Readonly<Record<string, string>>;
  /** Receivers that its routes choose, even if it is suppressed. */
  readonly receivers: readonly { readonly name: string }[];
  readonly status: { readonly state: 'active' | 'suppressed' | 'unprocessed' };
}

/** A running Alertmanager; `await using` kills it. */
export interface Alertmanager extends AsyncDisposable {
  /** Sends alerts that fire now. */
  post(alerts: readonly Labels[]): Promise<void>;
  shown(): Promise<readonly ShownAlert[]>;
}

/**
 * Starts Alertmanager and waits until it is ready.
 * @param directory for its configuration and its data
 * @param address `host:port`
 * @param config text of its configuration
 */
export async function startAlertmanager(
  program: string,
  directory: string,
  address: string,
  config: string,
): Promise<Alertmanager> {
  const file = join(directory, 'alertmanager.yml');
  await writeFile(file, config);
  const args = [
    `--config.file=${file}`,
    `--storage.path=${join(directory, 'alertmanager')}`,
    `--web.listen-address=${address}`,
    '--cluster.listen-address=',
  ];
  const server = await startServer(program, args, `http://${address}/-/ready`);
  const url = `http://${address}/api/v2/alerts`;
  return {
    post: async (alerts) => {
      const body = JSON.stringify(alerts.map((labels) => ({ labels })));
      const headers = { 'content-type': 'application/json' };
      await vi.waitFor(async () => {
        const answer = await fetch(url, { method: 'POST', body, headers });
        if (!answer.ok) throw new Error(`Alertmanager answered ${answer.status}`);
      }, PATIENCE);
    },
    shown: async () => (await (await fetch(url)).json()) as readonly ShownAlert[],
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}
