import { join } from 'node:path';
import Database from 'better-sqlite3';
import { API_KEY, CONCURRENCY, type OpenContender } from './contender.ts';

interface Item {
  readonly id: string;
  readonly name: string;
  readonly status: string;
}

/** Script that a user of Node would write: fetch, parse the JSON, upsert each row, in one transaction per project. */
export const nodePeer: OpenContender = async ({ baseUrl, projects, directory }) => {
  const db = new Database(join(directory, 'peer.db'));
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = FULL');
  db.exec(`CREATE TABLE prompt (
    project TEXT, id TEXT, name TEXT, status TEXT, changed_at INTEGER, PRIMARY KEY (project, id)
  )`);
  const upsert = db.prepare(
    `INSERT INTO prompt VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (project, id) DO UPDATE SET status = excluded.status, changed_at = excluded.changed_at
     WHERE status <> excluded.status`,
  );
  const store = db.transaction((project: string, items: readonly Item[]) => {
    const now = Date.now();
    let changed = 0;
    for (const { id, name, status } of items) {
      changed += upsert.run(project, id, name, status, now).changes;
    }
    return changed;
  });

  async function pollOne(project: string): Promise<{ prompts: number; changed: number }> {
    const response = await fetch(`${baseUrl}/v2/projects/${project}/prompts/`, {
      headers: { 'X-API-Key': API_KEY },
    });
    if (!response.ok) throw new Error(`the service answered ${response.status}`);
    const items = (await response.json()) as Item[];
    return { prompts: items.length, changed: store(project, items) };
  }

  return {
    poll: async () => {
      const waiting = projects.values();
      let prompts = 0;
      let changed = 0;
      const work = async () => {
        for (const project of waiting) {
          const polled = await pollOne(project);
          prompts += polled.prompts;
          changed += polled.changed;
        }
      };
      await Promise.all(Array.from({ length: CONCURRENCY }, work));
      return { prompts, changed };
    },
    close: async () => {
      db.close();
    },
  };
};
